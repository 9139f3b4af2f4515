// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <random>

#include <doctest/doctest.h>

#include "core/arena.h"

namespace annulus {

namespace {

std::size_t aligned(std::size_t bytes) {
  return (bytes + arena_alignment - 1) / arena_alignment * arena_alignment;
}

bool together(const Lifetime& a, const Lifetime& b) {
  return std::max(a.first, b.first) <= std::min(a.last, b.last);
}

// No two blocks that live together share a byte, and all lie in the arena.
void check_plan(const std::vector<Lifetime>& blocks, const ArenaPlan& plan) {
  REQUIRE(plan.offsets.size() == blocks.size());
  bool disjoint = true;
  for (std::size_t a = 0; a < blocks.size(); ++a) {
    CHECK(plan.offsets[a] % arena_alignment == 0);
    CHECK(plan.offsets[a] + blocks[a].bytes <= plan.bytes);
    for (std::size_t b = 0; b < a; ++b) {
      disjoint = disjoint && (!together(blocks[a], blocks[b]) ||
                              plan.offsets[a] + blocks[a].bytes <= plan.offsets[b] ||
                              plan.offsets[b] + blocks[b].bytes <= plan.offsets[a]);
    }
  }
  CHECK(disjoint);
}

// The most bytes that live at any one time: no plan needs less.
std::size_t most_alive(const std::vector<Lifetime>& blocks) {
  std::size_t most = 0;
  for (const Lifetime& at : blocks) {
    std::size_t alive = 0;
    for (const Lifetime& block : blocks) {
      if (block.first <= at.first && at.first <= block.last) alive += aligned(block.bytes);
    }
    most = std::max(most, alive);
  }
  return most;
}

}  // namespace

TEST_CASE("blocks that do not live together share memory") {
  const std::vector<Lifetime> chain = {{100, 0, 1}, {200, 2, 3}, {150, 4, 5}};
  const ArenaPlan plan = plan_arena(chain);
  CHECK(plan.offsets == std::vector<std::size_t>{0, 0, 0});
  CHECK(plan.bytes == 256);
}

TEST_CASE("both ends of a lifetime count") {
  const ArenaPlan plan = plan_arena(std::vector<Lifetime>{{64, 0, 1}, {64, 1, 2}});
  CHECK(plan.bytes == 128);
  CHECK(plan.offsets[0] != plan.offsets[1]);
}

TEST_CASE("a block takes the tightest gap that holds it") {
  // Four wide blocks at 0, 1024, 1792 and 2304, two of which end early and leave gaps of 768 and
  // 512 bytes; the small ones fit both.
  const std::vector<Lifetime> blocks = {{1024, 0, 9}, {768, 0, 4}, {512, 0, 9},
                                        {448, 0, 4},  {384, 0, 9}, {320, 5, 9}};
  const ArenaPlan plan = plan_arena(blocks);
  check_plan(blocks, plan);
  CHECK(plan.offsets == std::vector<std::size_t>{0, 1024, 1792, 2304, 2752, 2304});
  CHECK(plan.bytes == most_alive(blocks));
}

TEST_CASE("no blocks and empty blocks need no memory") {
  CHECK(plan_arena({}).bytes == 0);
  const ArenaPlan plan = plan_arena(std::vector<Lifetime>{{0, 0, 9}, {0, 0, 9}});
  CHECK(plan.bytes == 0);
  CHECK(plan.offsets.size() == 2);
}

TEST_CASE("a plan never overlaps what lives together, and wastes little") {
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    std::vector<Lifetime> blocks(1 + random() % 60);
    for (Lifetime& block : blocks) {
      block.bytes = random() % 5000;
      block.first = static_cast<int>(random() % 40);
      block.last = block.first + static_cast<int>(random() % (round % 2 == 0 ? 4 : 40));
    }
    const ArenaPlan plan = plan_arena(blocks);
    check_plan(blocks, plan);
    CHECK(plan.bytes >= most_alive(blocks));
    CHECK(plan.bytes <= 2 * most_alive(blocks));
    CHECK(plan_arena(blocks).offsets == plan.offsets);
  }
}

TEST_CASE("the activations and gradients of a chain need no more than what lives") {
  // Layer i writes activation i at time i, which is read until its backward at time 2n - i.
  constexpr int n = 20;
  std::vector<Lifetime> blocks;
  for (int i = 0; i < n; ++i) {
    blocks.push_back({static_cast<std::size_t>(1000 * (1 + i % 3)), i, 2 * n - i});
    blocks.push_back({static_cast<std::size_t>(1000 * (1 + i % 3)), 2 * n - i, 2 * n - i + 1});
  }
  const ArenaPlan plan = plan_arena(blocks);
  check_plan(blocks, plan);
  CHECK(plan.bytes <= most_alive(blocks) + most_alive(blocks) / 10);
}

}  // namespace annulus
