// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include <doctest/doctest.h>

#include "core/error.h"
#include "topology/cpu_placement.h"

namespace annulus {

namespace {

using Cores = std::vector<int>;

Cores range(int count) {
  Cores cores(static_cast<std::size_t>(count));
  std::iota(cores.begin(), cores.end(), 0);
  return cores;
}

CpuPlan plan(const std::vector<Cores>& masks, int threads = 0) {
  return plan_cpu_placement(masks, threads);
}

}  // namespace

TEST_CASE("ranks without binding divide the allowed cores") {
  const CpuPlan four = plan(std::vector<Cores>(4, range(8)));
  REQUIRE(four.ranks.size() == 4);
  CHECK(four.warnings.empty());
  CHECK(four.ranks[0].cores == Cores{0, 1});
  CHECK(four.ranks[3].cores == Cores{6, 7});
  for (int rank = 0; rank < 4; ++rank) {
    const Placement& placement = four.ranks[static_cast<std::size_t>(rank)];
    CHECK(placement.local_rank == rank);
    CHECK(placement.local_size == 4);
    CHECK(placement.threads == 2);
    CHECK(placement.gpu == -1);
  }
  // Uneven, and with gaps in the numbers: a cgroup gave only these.
  const CpuPlan three = plan(std::vector<Cores>(3, Cores{2, 3, 5, 7, 11, 13, 17}));
  CHECK(three.ranks[0].cores == Cores{2, 3});
  CHECK(three.ranks[1].cores == Cores{5, 7});
  CHECK(three.ranks[2].cores == Cores{11, 13, 17});
  CHECK(three.ranks[2].threads == 3);
  CHECK(plan({range(5)}).ranks[0].cores == range(5));
}

TEST_CASE("every core goes to one rank for all numbers of cores and ranks") {
  for (int cores = 1; cores <= 20; ++cores) {
    for (int ranks = 1; ranks <= cores; ++ranks) {
      Cores all;
      for (const Placement& rank :
           plan(std::vector<Cores>(static_cast<std::size_t>(ranks), range(cores))).ranks) {
        CHECK(!rank.cores.empty());
        CHECK(static_cast<std::size_t>(rank.threads) == rank.cores.size());
        all.insert(all.end(), rank.cores.begin(), rank.cores.end());
      }
      CHECK(all == range(cores));
    }
  }
}

TEST_CASE("more ranks than cores run unpinned with one thread each") {
  const CpuPlan crowded = plan(std::vector<Cores>(3, range(2)));
  for (const Placement& rank : crowded.ranks) {
    CHECK(rank.cores.empty());
    CHECK(rank.threads == 1);
  }
  REQUIRE(crowded.warnings.size() == 1);
  CHECK(crowded.warnings[0] == "3 ranks with 1 thread each share 2 cores: expect them to be slow");
  CHECK(plan(std::vector<Cores>(3, range(2)), 4).ranks[1].threads == 4);
}

TEST_CASE("a rank that the launcher bound keeps its cores") {
  const CpuPlan bound = plan({{0, 1, 2}, {3, 4, 5}});
  CHECK(bound.ranks[0].cores == Cores{0, 1, 2});
  CHECK(bound.ranks[1].cores == Cores{3, 4, 5});
  CHECK(bound.ranks[1].threads == 3);
  CHECK(bound.warnings.empty());
  // Bound to a socket each: the ranks of a socket divide it. The order within a mask does not
  // count.
  const CpuPlan sockets = plan({{0, 1, 2, 3}, {4, 5, 6, 7}, {3, 2, 1, 0}, {4, 5, 6, 7}});
  CHECK(sockets.ranks[0].cores == Cores{0, 1});
  CHECK(sockets.ranks[1].cores == Cores{4, 5});
  CHECK(sockets.ranks[2].cores == Cores{2, 3});
  CHECK(sockets.ranks[3].cores == Cores{6, 7});
  const CpuPlan overlapping = plan({{0, 1}, {1, 2}});
  CHECK(overlapping.ranks[0].cores == Cores{0, 1});
  CHECK(overlapping.ranks[1].cores == Cores{1, 2});
  REQUIRE(overlapping.warnings.size() == 1);
  CHECK(overlapping.warnings[0].find("local ranks 0 and 1 to processors that overlap") !=
        std::string::npos);
}

TEST_CASE("the number of threads can be set, and too many are a warning") {
  const CpuPlan fewer = plan(std::vector<Cores>(2, range(8)), 1);
  CHECK(fewer.ranks[1].threads == 1);
  CHECK(fewer.ranks[1].cores == Cores{4, 5, 6, 7});
  CHECK(fewer.warnings.empty());
  const CpuPlan more = plan(std::vector<Cores>(2, range(2)), 3);
  CHECK(more.ranks[0].threads == 3);
  REQUIRE(more.warnings.size() == 1);
  CHECK(more.warnings[0] ==
        "local rank 0 has 3 threads on 1 core: expect it to be slow; set 'threads' to at most 1");
}

TEST_CASE("a rank without processors and a negative number of threads are refused") {
  const auto kind = [](const std::vector<Cores>& masks, int threads) {
    try {
      plan(masks, threads);
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::bug;
  };
  CHECK(kind({{0}, {}}, 0) == ErrorKind::resource);
  CHECK(kind({{0}}, -1) == ErrorKind::usage);
}

TEST_CASE("threads that would do nothing but switch are refused with both numbers") {
  CHECK(plan({range(2)}, 32).ranks[0].threads == 32);
  CHECK_THROWS_WITH_AS(plan({range(2)}, 33), doctest::Contains("2 cores of local rank 0"), Error);
  CHECK_THROWS_WITH_AS(plan({range(2)}, 1000), doctest::Contains("expected at most 32, found 1000"),
                       Error);
  // Ranks that share their cores have less than one each.
  CHECK(plan(std::vector<Cores>(3, range(2)), 16).ranks[2].threads == 16);
  CHECK_THROWS_WITH_AS(plan(std::vector<Cores>(3, range(2)), 17),
                       doctest::Contains("1 core of local rank 0"), Error);
}

}  // namespace annulus
