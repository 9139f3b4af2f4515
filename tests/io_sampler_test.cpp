// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.h"
#include "io/sampler.h"

using namespace annulus;

namespace {

std::vector<std::int64_t> order_of(const Sampler& sampler, std::int64_t epoch, std::int64_t size) {
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < size; ++i) order.push_back(sampler.sample(epoch, i));
  return order;
}

}  // namespace

TEST_CASE("a shuffled epoch is a permutation for every size from 1 to 2000") {
  for (std::int64_t size = 1; size <= 2000; ++size) {
    const Sampler sampler(size, true, 7);
    std::vector<std::int64_t> order = order_of(sampler, 3, size);
    std::sort(order.begin(), order.end());
    std::vector<std::int64_t> all(static_cast<std::size_t>(size));
    std::iota(all.begin(), all.end(), std::int64_t{0});
    REQUIRE(order == all);
  }
}

TEST_CASE("without shuffle the order is that of the file") {
  const Sampler sampler(5, false, 7);
  CHECK(order_of(sampler, 4, 5) == std::vector<std::int64_t>{0, 1, 2, 3, 4});
}

TEST_CASE("the order depends on epoch and seed and on nothing else") {
  const auto order = [](std::uint64_t seed, std::int64_t epoch) {
    return order_of(Sampler(1000, true, seed), epoch, 1000);
  };
  CHECK(order(1, 0) == order(1, 0));
  CHECK(order(1, 0) != order(1, 1));
  CHECK(order(1, 0) != order(2, 0));
}

// By an independent program, from the published definitions of Philox and XXH3.
TEST_CASE("the order of ten samples is what it has always been") {
  CHECK(order_of(Sampler(10, true, 1), 0, 10) ==
        std::vector<std::int64_t>{4, 3, 9, 2, 5, 0, 7, 6, 8, 1});
}

TEST_CASE("every sample is as likely at every position") {
  constexpr std::int64_t size = 12;
  constexpr int epochs = 12000;
  const Sampler sampler(size, true, 5);
  std::array<std::array<int, size>, size> counts{};
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (std::int64_t i = 0; i < size; ++i) {
      ++counts[static_cast<std::size_t>(i)][static_cast<std::size_t>(sampler.sample(epoch, i))];
    }
  }
  // Binomial with mean 1000 and standard deviation 30: five of them either way.
  for (const auto& row : counts) {
    for (int count : row) {
      CHECK(count > 850);
      CHECK(count < 1150);
    }
  }
}

TEST_CASE("three samples come in all six orders about equally often") {
  std::map<std::vector<std::int64_t>, int> counts;
  const Sampler sampler(3, true, 11);
  for (int epoch = 0; epoch < 6000; ++epoch) ++counts[order_of(sampler, epoch, 3)];
  CHECK(counts.size() == 6);
  for (const auto& [order, count] : counts) {
    CHECK(count > 850);
    CHECK(count < 1150);
  }
}

TEST_CASE("a sampler of 2^40 samples stays in range") {
  constexpr std::int64_t size = (std::int64_t{1} << 40) + 1;
  const Sampler sampler(size, true, 3);
  for (std::int64_t i = 0; i < 1000; ++i) {
    const std::int64_t sample = sampler.sample(0, size - 1 - i);
    CHECK(sample >= 0);
    CHECK(sample < size);
  }
}

TEST_CASE("a position outside of the epoch is a bug") {
  const Sampler sampler(4, true, 1);
  CHECK_THROWS_AS(sampler.sample(0, 4), Error);
  CHECK_THROWS_AS(sampler.sample(0, -1), Error);
  CHECK_THROWS_AS(Sampler(0, true, 1), Error);
}
