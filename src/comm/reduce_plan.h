// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/sum_tree.h"
#include "core/shards.h"

namespace annulus {

// The additions that sum S shards over nodes of ranks: within each rank, in the node, across nodes.
struct ReducePlan {
  std::vector<Span64> rank_shards;  // by rank
  std::vector<Span64> node_shards;  // by node
  std::vector<SumOrder> in_node;    // by node; its sources are local ranks
  SumOrder across;                  // its sources are nodes
  // Across nodes, blocks of 1, 2, 4, ... nodes join in pairs, which gives the order of `across`: so
  // recursive halving and doubling can be used.
  bool pairs = false;
};

ReducePlan plan_reduction(std::int64_t shards, std::span<const int> ranks_by_node);

}  // namespace annulus
