// SPDX-License-Identifier: Apache-2.0
#include "topology/cpu_placement.h"

#include <algorithm>
#include <iterator>

#include "core/error.h"
#include "core/shards.h"

namespace annulus {
namespace {

// The cores of the `index`-th of `ranks` ranks with the same mask; none where they do not suffice.
std::vector<int> share(const std::vector<int>& mask, int index, int ranks) {
  if (static_cast<std::size_t>(ranks) > mask.size()) return {};
  const Span64 part = share_of(static_cast<std::int64_t>(mask.size()), index, ranks);
  return {mask.begin() + part.begin, mask.begin() + part.end};
}

Placement place(std::span<const std::vector<int>> masks, std::size_t rank, int threads) {
  const std::vector<int>& mask = masks[rank];
  const auto end = masks.begin() + static_cast<std::ptrdiff_t>(rank);
  const auto before = static_cast<int>(std::count(masks.begin(), end, mask));
  const auto ranks = static_cast<int>(std::count(masks.begin(), masks.end(), mask));
  Placement placement;
  placement.local_rank = static_cast<int>(rank);
  placement.local_size = static_cast<int>(masks.size());
  placement.cores = share(mask, before, ranks);
  const int own = std::max(1, static_cast<int>(placement.cores.size()));
  placement.threads = threads > 0 ? threads : own;
  return placement;
}

// Threads of the layers' library wait for each other without giving up their core: far more of them
// than cores take a second where one takes a millisecond.
void require_sane_threads(const Placement& placement) {
  constexpr int most_a_core = 16;
  const int cores = std::max(1, static_cast<int>(placement.cores.size()));
  if (placement.threads <= most_a_core * cores) return;
  throw Error(ErrorKind::usage,
              fmt::format("'threads' is too large for the {} core{} of local rank "
                          "{}, which would do nothing but switch",
                          cores, cores == 1 ? "" : "s", placement.local_rank))
      .values(fmt::format("at most {}", most_a_core * cores), std::to_string(placement.threads));
}

bool overlap(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<int> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return !both.empty();
}

// Ranks that the launcher bound to sets which share some processors, but not all.
std::string overlap_warning(std::span<const std::vector<int>> masks) {
  for (std::size_t b = 1; b < masks.size(); ++b) {
    for (std::size_t a = 0; a < b; ++a) {
      if (masks[a] == masks[b] || !overlap(masks[a], masks[b])) continue;
      return fmt::format(
          "the launcher bound local ranks {} and {} to processors that overlap: they "
          "will share some; bind each rank to its own, or to none",
          a, b);
    }
  }
  return "";
}

std::string threads_warning(const CpuPlan& plan, std::span<const std::vector<int>> masks) {
  for (const Placement& rank : plan.ranks) {
    const auto& mask = masks[static_cast<std::size_t>(rank.local_rank)];
    const auto sharing = std::count(masks.begin(), masks.end(), mask);
    const auto own = rank.cores.size();
    if (own > 0 && static_cast<std::size_t>(rank.threads) > own) {
      return fmt::format(
          "local rank {} has {} threads on {} core{}: expect it to be slow; set "
          "'threads' to at most {}",
          rank.local_rank, rank.threads, own, own == 1 ? "" : "s", own);
    }
    if (own == 0) {
      return fmt::format("{} ranks with {} thread{} each share {} core{}: expect them to be slow",
                         sharing, rank.threads, rank.threads == 1 ? "" : "s", mask.size(),
                         mask.size() == 1 ? "" : "s");
    }
  }
  return "";
}

}  // namespace

CpuPlan plan_cpu_placement(std::span<const std::vector<int>> masks, int threads) {
  require(threads >= 0, ErrorKind::usage, "'threads' must be at least 0, not {}", threads);
  std::vector<std::vector<int>> sorted(masks.begin(), masks.end());
  for (std::size_t rank = 0; rank < sorted.size(); ++rank) {
    require(!sorted[rank].empty(), ErrorKind::resource,
            "local rank {} has no processor that it may run on", rank);
    std::sort(sorted[rank].begin(), sorted[rank].end());
  }
  CpuPlan plan;
  for (std::size_t rank = 0; rank < sorted.size(); ++rank) {
    plan.ranks.push_back(place(sorted, rank, threads));
    require_sane_threads(plan.ranks.back());
  }
  for (std::string warning : {overlap_warning(sorted), threads_warning(plan, sorted)}) {
    if (!warning.empty()) plan.warnings.push_back(std::move(warning));
  }
  return plan;
}

}  // namespace annulus
