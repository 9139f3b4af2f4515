// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace annulus {

// 64-bit XXH3 as 16 hexadecimal digits.
std::string checksum_of(std::span<const std::byte> bytes);
// Of a file, read piece by piece. Error (output).
std::string checksum_of_file(const std::string& path);

}  // namespace annulus
