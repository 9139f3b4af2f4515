// SPDX-License-Identifier: Apache-2.0
#include "core/arena.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace annulus {
namespace {

bool overlap(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

std::size_t aligned(std::size_t bytes) {
  return (bytes + arena_alignment - 1) / arena_alignment * arena_alignment;
}

}  // namespace

ArenaPlan plan_arena(std::span<const Lifetime> blocks) {
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return blocks[a].bytes > blocks[b].bytes; });

  ArenaPlan plan;
  plan.offsets.resize(blocks.size());
  std::vector<std::size_t> placed;  // indices, sorted by offset
  for (std::size_t block : order) {
    const std::size_t bytes = aligned(blocks[block].bytes);
    std::size_t best = 0;
    std::size_t best_gap = std::numeric_limits<std::size_t>::max();
    std::size_t end = 0;  // first free byte after the neighbours seen so far
    for (std::size_t other : placed) {
      if (!overlap(blocks[block], blocks[other])) continue;
      const std::size_t start = plan.offsets[other];
      if (start > end && start - end >= bytes && start - end < best_gap) {
        best = end;
        best_gap = start - end;
      }
      end = std::max(end, start + aligned(blocks[other].bytes));
    }
    if (best_gap == std::numeric_limits<std::size_t>::max()) best = end;
    plan.offsets[block] = best;
    plan.bytes = std::max(plan.bytes, best + bytes);
    const auto position = std::upper_bound(
        placed.begin(), placed.end(), best,
        [&](std::size_t offset, std::size_t i) { return offset < plan.offsets[i]; });
    placed.insert(position, block);
  }
  return plan;
}

}  // namespace annulus
