// SPDX-License-Identifier: Apache-2.0
#include "comm/roster.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <unistd.h>

namespace annulus {

int Roster::local_rank() const {
  const auto& ranks = neighbours();
  return static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
}

bool Roster::consecutive() const {
  return std::is_sorted(node_of.begin(), node_of.end());
}

bool Roster::even() const {
  return std::all_of(ranks_by_node.begin(), ranks_by_node.end(),
                     [&](int ranks) { return ranks == ranks_by_node.front(); });
}

const std::string& Roster::host_of(int of_rank) const {
  const int node_of_rank = node_of[static_cast<std::size_t>(of_rank)];
  return hosts[static_cast<std::size_t>(node_of_rank)];
}

std::string Roster::name(int of_rank) const {
  return fmt::format("rank {} ({})", of_rank, host_of(of_rank));
}

std::string Roster::names(std::span<const int> of_ranks) const {
  std::string text;
  for (const int each : of_ranks) text += (text.empty() ? "" : ", ") + name(each);
  return text;
}

Roster make_roster(int rank, std::span<const int> nodes, std::span<const std::string> hosts) {
  Roster roster;
  roster.rank = rank;
  roster.node_of.clear();
  roster.ranks_on.clear();
  roster.hosts.clear();
  std::vector<int> seen;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto known = std::find(seen.begin(), seen.end(), nodes[i]);
    const auto node = static_cast<std::size_t>(known - seen.begin());
    if (known == seen.end()) {
      seen.push_back(nodes[i]);
      roster.ranks_on.emplace_back();
      roster.hosts.push_back(hosts[i]);
    }
    roster.node_of.push_back(static_cast<int>(node));
    roster.ranks_on[node].push_back(static_cast<int>(i));
  }
  roster.ranks_by_node.clear();
  for (const auto& ranks : roster.ranks_on) {
    roster.ranks_by_node.push_back(static_cast<int>(ranks.size()));
  }
  return roster;
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace annulus
