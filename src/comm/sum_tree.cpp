// SPDX-License-Identifier: Apache-2.0
#include "comm/sum_tree.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace annulus {
namespace {

// One block of all intermediate vectors stays in the first-level cache.
constexpr std::int64_t block_bytes = 8 << 10;

}  // namespace

std::int64_t split_of(std::int64_t leaves) {
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(leaves - 1)));
}

bool is_branch(std::int64_t leaves, Span64 part) {
  Span64 tree{0, leaves};
  while (tree.begin != part.begin || tree.end != part.end) {
    if (tree.count() < 2) return false;
    const std::int64_t middle = tree.begin + split_of(tree.count());
    if (part.end <= middle) {
      tree.end = middle;
    } else if (part.begin >= middle) {
      tree.begin = middle;
    } else {
      return false;
    }
  }
  return true;
}

SumOrder::SumOrder(std::span<const Partial> partials, std::int64_t shards) {
  std::vector<Partial> present;
  for (const Partial& partial : partials) {
    if (partial.shards.count() > 0) present.push_back(partial);
  }
  std::sort(present.begin(), present.end(),
            [](const Partial& a, const Partial& b) { return a.shards.begin < b.shards.begin; });
  for (const Partial& partial : present) sources_.push_back(partial.source);
  if (present.size() < 2) return;
  build(present, {0, shards}, 1);
  int vectors = 0;
  for (const Step& step : steps_) vectors = std::max(vectors, -step.to);
  scratch_ = Buffer::host(static_cast<std::size_t>(vectors * block_bytes));
}

// Returns the operand that holds the sum. Intermediate vector -d may be used from depth d on.
int SumOrder::build(std::span<const Partial> partials, Span64 tree, int depth) {
  if (partials.size() == 1) return partials.front().source;
  const std::int64_t middle = tree.begin + split_of(tree.count());
  const auto right = std::find_if(partials.begin(), partials.end(),
                                  [&](const Partial& p) { return p.shards.begin >= middle; });
  const auto lefts = static_cast<std::size_t>(right - partials.begin());
  if (lefts == partials.size()) return build(partials, {tree.begin, middle}, depth);
  if (lefts == 0) return build(partials, {middle, tree.end}, depth);
  const int a = build(partials.first(lefts), {tree.begin, middle}, depth);
  const int b = build(partials.subspan(lefts), {middle, tree.end}, depth + (a < 0 ? 1 : 0));
  steps_.push_back({a, b, -depth});
  sums_.push_back({partials.front().shards.begin, partials.back().shards.end});
  return -depth;
}

bool SumOrder::uses(int source) const {
  return std::find(sources_.begin(), sources_.end(), source) != sources_.end();
}

void SumOrder::run(const Arithmetic& arithmetic, std::span<const std::byte* const> inputs,
                   std::byte* to, std::int64_t count) {
  if (sources_.empty()) return;
  if (steps_.empty()) {
    const std::byte* only = inputs[static_cast<std::size_t>(sources_.front())];
    if (only != to) std::memcpy(to, only, static_cast<std::size_t>(count * arithmetic.element));
    return;
  }
  const std::int64_t block = block_bytes / arithmetic.element;
  for (std::int64_t first = 0; first < count; first += block) {
    run_block(arithmetic, inputs, to, first, std::min(block, count - first));
  }
}

void SumOrder::run_block(const Arithmetic& arithmetic, std::span<const std::byte* const> inputs,
                         std::byte* to, std::int64_t first, std::int64_t count) {
  const std::int64_t offset = first * arithmetic.element;
  const auto vector = [&](int number) {
    return scratch_.as<std::byte>() + (-number - 1) * block_bytes;
  };
  const auto operand = [&](int number) -> const std::byte* {
    return number < 0 ? vector(number) : inputs[static_cast<std::size_t>(number)] + offset;
  };
  for (const Step& step : steps_) {
    const bool last = &step == &steps_.back();
    std::byte* result = last ? to + offset : vector(step.to);
    arithmetic.combine(result, operand(step.a), operand(step.b), count);
  }
}

}  // namespace annulus
