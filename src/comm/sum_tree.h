// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/arithmetic.h"
#include "core/buffer.h"
#include "core/shards.h"

namespace annulus {

// The tree that all sums follow. Over n leaves in a row: a lone leaf is itself; otherwise the first
// split_of(n) leaves are the left branch and the rest the right one. It is what a binary counter
// makes that merges equal neighbours as they come, and what is left over from the most recent up.
std::int64_t split_of(std::int64_t leaves);  // the largest power of two below `leaves`

// Whether the leaves [part.begin, part.end) are one branch of the tree over `leaves`.
bool is_branch(std::int64_t leaves, Span64 part);

// A partial sum over some shards, held by `source`.
struct Partial {
  int source = 0;
  Span64 shards;
};

// The order in which partial sums are added up along the tree over all shards: partials without
// shards are left out, one that lies on both sides of a split counts for the side where it begins.
class SumOrder {
 public:
  SumOrder() = default;
  SumOrder(std::span<const Partial> partials, std::int64_t shards);

  // The sources that take part.
  const std::vector<int>& sources() const { return sources_; }
  bool uses(int source) const;
  // The shards under each addition.
  const std::vector<Span64>& sums() const { return sums_; }

  // `to` becomes the sum of vectors of `count` elements; inputs[i] belongs to source i. `to` may be
  // one of them. Without any source `to` is left alone.
  void run(const Arithmetic& arithmetic, std::span<const std::byte* const> inputs, std::byte* to,
           std::int64_t count);

 private:
  // An addition: operands >= 0 are sources, below 0 intermediate vectors -1, -2, ...
  struct Step {
    int a;
    int b;
    int to;
  };
  int build(std::span<const Partial> partials, Span64 tree, int depth);
  void run_block(const Arithmetic& arithmetic, std::span<const std::byte* const> inputs,
                 std::byte* to, std::int64_t first, std::int64_t count);

  std::vector<int> sources_;
  std::vector<Step> steps_;
  std::vector<Span64> sums_;
  Buffer scratch_;
};

}  // namespace annulus
