// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

namespace annulus {

// Who the ranks of a communicator are: which node each is on, and the hosts' names.
struct Roster {
  int rank = 0;
  std::vector<int> node_of{0};                  // by rank; nodes are counted in the order of ranks
  std::vector<std::vector<int>> ranks_on{{0}};  // by node, in increasing order
  std::vector<std::string> hosts{std::string()};  // by node
  std::vector<int> ranks_by_node{1};

  int size() const { return static_cast<int>(node_of.size()); }
  int nodes() const { return static_cast<int>(ranks_on.size()); }
  int node() const { return node_of[static_cast<std::size_t>(rank)]; }
  const std::vector<int>& neighbours() const { return ranks_on[static_cast<std::size_t>(node())]; }
  int local_rank() const;
  int local_size() const { return static_cast<int>(neighbours().size()); }
  // Whether the ranks of each node are consecutive, and each node has as many.
  bool consecutive() const;
  bool even() const;
  const std::string& host_of(int of_rank) const;
  // "rank 3 (h1)", for messages.
  std::string name(int of_rank) const;
  std::string names(std::span<const int> of_ranks) const;
};

// `nodes` and `hosts` say, for each rank, a number that is equal for ranks of one node, and its
// host's name.
Roster make_roster(int rank, std::span<const int> nodes, std::span<const std::string> hosts);

// This machine's host name.
std::string host_name();

}  // namespace annulus
