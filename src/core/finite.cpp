// SPDX-License-Identifier: Apache-2.0
#include "core/finite.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace annulus {

bool all_finite(std::span<const float> values) {
  constexpr std::uint32_t exponent = 0x7f800000;
  constexpr std::size_t block = 4096;
  for (std::size_t begin = 0; begin < values.size(); begin += block) {
    const std::span<const float> part =
        values.subspan(begin, std::min(block, values.size() - begin));
    std::uint32_t found = 0;  // counted, not left early: the compiler makes vectors of it
    for (const float value : part) {
      found += (std::bit_cast<std::uint32_t>(value) & exponent) == exponent ? 1U : 0U;
    }
    if (found != 0) return false;
  }
  return true;
}

}  // namespace annulus
