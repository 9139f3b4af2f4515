// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace annulus {

// The first byte, counted from 0, of what is not UTF-8 text: a sequence that is cut off, overlong,
// a surrogate or above U+10FFFF, or a zero byte next to the start (UTF-16). Nothing where all is.
std::optional<std::size_t> find_invalid_utf8(std::string_view text);

}  // namespace annulus
