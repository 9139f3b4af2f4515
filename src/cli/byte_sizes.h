// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace annulus {

// "1K,25M,102400000": numbers of bytes of fp32 buffers, with K, M or G for 2^10, 2^20, 2^30. Error
// (usage) that names the part that is no positive multiple of 4.
std::vector<std::int64_t> byte_sizes(const std::string& text);

}  // namespace annulus
