// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace annulus {

// One block of memory that is needed from time `first` to time `last`, both included. Times are any
// increasing numbers, such as the positions of operations in a step.
struct Lifetime {
  std::size_t bytes = 0;
  int first = 0;
  int last = 0;
};

struct ArenaPlan {
  std::vector<std::size_t> offsets;  // one a block, each a multiple of arena_alignment
  std::size_t bytes = 0;             // size of the arena
};

inline constexpr std::size_t arena_alignment = 64;

// Gives each block an offset so that blocks that live at the same time do not overlap: largest
// first, each into the tightest gap that is free during its whole life. The result depends on the
// arguments alone.
ArenaPlan plan_arena(std::span<const Lifetime> blocks);

}  // namespace annulus
