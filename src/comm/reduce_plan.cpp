// SPDX-License-Identifier: Apache-2.0
#include "comm/reduce_plan.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "comm/gradient_reducer.h"
#include "core/error.h"

namespace annulus {
namespace {

using Spans = std::vector<Span64>;

Spans in_order(Spans spans) {
  std::sort(spans.begin(), spans.end(), [](const Span64& a, const Span64& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  return spans;
}

bool same(const Spans& a, const Spans& b) {
  const auto equal = [](const Span64& x, const Span64& y) {
    return x.begin == y.begin && x.end == y.end;
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), equal);
}

// What is added where blocks of nodes join in pairs; an empty block adds nothing.
Spans sums_of_pairs(const Spans& nodes) {
  Spans sums;
  for (std::size_t width = 1; width < nodes.size(); width *= 2) {
    for (std::size_t first = 0; first < nodes.size(); first += 2 * width) {
      const std::int64_t begin = nodes[first].begin;
      const std::int64_t middle = nodes[first + width].begin;
      const std::int64_t end = nodes[first + 2 * width - 1].end;
      if (begin < middle && middle < end) sums.push_back({begin, end});
    }
  }
  return sums;
}

SumOrder order_of(std::span<const Span64> parts, std::int64_t shards) {
  std::vector<Partial> partials;
  for (const Span64& part : parts) partials.push_back({static_cast<int>(partials.size()), part});
  return {partials, shards};
}

bool all_branches(std::int64_t shards, const Spans& parts) {
  return std::all_of(parts.begin(), parts.end(), [&](const Span64& part) {
    return part.count() == 0 || is_branch(shards, part);
  });
}

}  // namespace

ReducePlan plan_reduction(std::int64_t shards, std::span<const int> ranks_by_node) {
  require(shards > 0, ErrorKind::bug, "{} shards", shards);
  const int ranks = std::accumulate(ranks_by_node.begin(), ranks_by_node.end(), 0);
  ReducePlan plan;
  for (int rank = 0; rank < ranks; ++rank) {
    plan.rank_shards.push_back(share_of(shards, rank, ranks));
  }
  std::span<const Span64> rest = plan.rank_shards;
  for (const int local_size : ranks_by_node) {
    const auto here = rest.first(static_cast<std::size_t>(local_size));
    rest = rest.subspan(here.size());
    plan.node_shards.push_back({here.front().begin, here.back().end});
    plan.in_node.push_back(order_of(here, shards));
  }
  plan.across = order_of(plan.node_shards, shards);
  plan.pairs = std::has_single_bit(plan.node_shards.size()) &&
               same(in_order(sums_of_pairs(plan.node_shards)), in_order(plan.across.sums()));
  return plan;
}

// Each rank sums its own shards along the tree over them, which is a branch of the whole tree where
// the shards are. Every other addition joins two ranges; S - 1 additions of which each makes a
// branch of the whole tree are that tree.
bool sum_is_exact(std::int64_t shards, std::span<const int> ranks_by_node) {
  const ReducePlan plan = plan_reduction(shards, ranks_by_node);
  return all_branches(shards, plan.rank_shards) && all_branches(shards, plan.across.sums()) &&
         std::all_of(plan.in_node.begin(), plan.in_node.end(),
                     [&](const SumOrder& node) { return all_branches(shards, node.sums()); });
}

}  // namespace annulus
