// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "comm/gradient_reducer.h"
#include "comm/job.h"
#include "core/error.h"
#include "support/gradients.h"

namespace annulus {
namespace {

using testing::expected_sum;
using testing::run_step;
using testing::small_layout;

using Sums = std::vector<std::vector<float>>;

// The sums of a step by all ranks, one for each layout; they must be the same bits on every rank.
Sums sums_on(int ranks, int nodes, const std::vector<ReducerLayout>& layouts) {
  std::mutex mutex;
  Sums sums(layouts.size());
  const auto sum = [&](Communicator& comm, std::size_t i) {
    const auto reducer = comm.make_reducer(layouts[i]);
    std::vector<float> mine;
    for (int step = 0; step < 2; ++step) {
      const auto result = run_step(comm, *reducer, layouts[i], step);
      mine.assign(result.begin(), result.end());
      std::fill(result.begin(), result.end(), NAN);  // the caller may do what it wants with it
    }
    const std::lock_guard lock(mutex);
    if (sums[i].empty()) sums[i] = mine;
    CHECK(std::memcmp(sums[i].data(), mine.data(), mine.size() * sizeof(float)) == 0);
  };
  run_as_threads(ranks, nodes, [&](Communicator& comm) {
    for (std::size_t i = 0; i < layouts.size(); ++i) sum(comm, i);
  });
  return sums;
}

std::vector<int> ranks_by_node(int ranks, int nodes) {
  std::vector<int> counts(static_cast<std::size_t>(nodes));
  for (std::size_t node = 0; node < counts.size(); ++node) {
    const auto share = share_of(ranks, static_cast<std::int64_t>(node), nodes);
    counts[node] = static_cast<int>(share.count());
  }
  return counts;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Terms are below 1 in size, so the roundings of partial sums are below the number of shards.
bool equal_to_rounding(const std::vector<float>& a, const std::vector<float>& b, float shards) {
  const auto close = [&](float x, float y) { return std::abs(x - y) <= 1e-6F * shards; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), close);
}

void check_against_one_rank(const std::vector<ReducerLayout>& layouts, int ranks, int nodes) {
  const Sums sums = sums_on(ranks, nodes, layouts);
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    const std::int64_t shards = layouts[i].shards;
    CAPTURE(shards);
    CAPTURE(ranks);
    CAPTURE(nodes);
    const std::vector<float> one = expected_sum(layouts[i], 1);
    if (sum_is_exact(shards, ranks_by_node(ranks, nodes))) {
      CHECK(same_bits(sums[i], one));
    } else {
      CHECK(equal_to_rounding(sums[i], one, static_cast<float>(shards)));
    }
  }
}

TEST_CASE("any shards on 1 to 8 ranks of up to 3 nodes: exact where said so, else to rounding") {
  std::vector<ReducerLayout> layouts;
  for (std::int64_t shards = 1; shards <= 16; ++shards) layouts.push_back(small_layout(shards));
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (int nodes = 1; nodes <= std::min(ranks, 3); ++nodes) {
      check_against_one_rank(layouts, ranks, nodes);
    }
  }
}

TEST_CASE("64 ranks on 1, 3 and 4 nodes") {
  const std::vector<ReducerLayout> layouts{small_layout(3), small_layout(64), small_layout(100)};
  for (const int nodes : {1, 3, 4}) check_against_one_rank(layouts, 64, nodes);
}

TEST_CASE("a sum that is only equal to rounding differs from one rank's") {
  // Otherwise the cases above could not tell an order of additions from another.
  REQUIRE_FALSE(sum_is_exact(11, ranks_by_node(3, 1)));
  CHECK_FALSE(same_bits(sums_on(3, 1, {small_layout(11)})[0], expected_sum(small_layout(11), 1)));
}

TEST_CASE("a sum of negative zeros is a negative zero on any number of ranks") {
  for (const auto& [ranks, nodes] : {std::pair{1, 1}, {3, 1}, {4, 4}, {5, 2}}) {
    run_as_threads(ranks, nodes, [](Communicator& comm) {
      const ReducerLayout layout = small_layout(2);
      const auto reducer = comm.make_reducer(layout);
      reducer->begin_step();
      for (int i = 0; i < share_of(2, comm.rank(), comm.size()).count(); ++i) {
        const auto gradients = reducer->begin_shard();
        std::fill(gradients.begin(), gradients.end(), -0.0F);
        reducer->end_shard();
      }
      for (const float value : reducer->finish()) {
        if (!std::signbit(value)) FAIL("a zero has lost its sign");
      }
    });
  }
}

TEST_CASE("a bucket goes on its way before backward has ended") {
  // Rank 1 never finishes its backward before rank 0's first bucket is summed in its window.
  run_as_threads(2, 2, [](Communicator& comm) {
    const ReducerLayout layout = small_layout(2);
    const auto reducer = comm.make_reducer(layout);
    REQUIRE(reducer->buckets().size() > 2);
    const std::int64_t before = comm.bytes_between_hosts();
    reducer->begin_step();
    const auto gradients = reducer->begin_shard();
    std::fill(gradients.begin(), gradients.end(), 1.0F);
    reducer->tensor_ready(2);
    while (comm.bytes_between_hosts() == before) std::this_thread::yield();
    reducer->end_shard();
    for (const float value : reducer->finish()) CHECK(value == 2.0F);
  });
}

TEST_CASE("buckets cover the buffer and memory is what the stack needs") {
  run_as_threads(2, 1, [](Communicator& comm) {
    const ReducerLayout layout = small_layout(8);
    const auto reducer = comm.make_reducer(layout);
    const auto elements = testing::elements_of(layout);
    CHECK(reducer->buckets().front().begin == 0);
    CHECK(reducer->buckets().back().end == elements);
    // 4 shards a rank: the window, and two buffers above it.
    const auto bytes = static_cast<std::size_t>(elements) * sizeof(float);
    CHECK(reducer->bytes() >= 3 * bytes);
    CHECK(reducer->bytes() <= 3 * bytes + 8192);
  });
}

TEST_CASE("calls out of order are bugs") {
  for (const int ranks : {1, 2}) {
    run_as_threads(ranks, 1, [](Communicator& comm) {
      const auto reducer = comm.make_reducer(small_layout(comm.size()));
      CHECK_THROWS_AS(reducer->finish(), Error);
      CHECK_THROWS_AS(reducer->begin_shard(), Error);
      reducer->begin_step();
      CHECK_THROWS_AS(reducer->begin_step(), Error);
      CHECK_THROWS_AS(reducer->tensor_ready(0), Error);
      CHECK_THROWS_AS(reducer->finish(), Error);
      reducer->begin_shard();
      CHECK_THROWS_AS(reducer->begin_shard(), Error);
      CHECK_THROWS_AS(reducer->tensor_ready(1000), Error);
      reducer->tensor_ready(1);
      CHECK_THROWS_AS(reducer->tensor_ready(1), Error);
      CHECK_THROWS_AS(reducer->tensor_ready(-1), Error);
      if (comm.size() > 1) CHECK_THROWS_AS(comm.barrier(), Error);
      reducer->end_shard();
      CHECK_THROWS_AS(reducer->begin_shard(), Error);
      reducer->finish();
      comm.barrier();
    });
  }
}

TEST_CASE("layouts that differ between ranks are a bug that all see") {
  run_as_threads(3, 1, [](Communicator& comm) {
    ReducerLayout layout = small_layout(3);
    if (comm.rank() == 1) layout.tail += 1;
    CHECK_THROWS_WITH_AS(comm.make_reducer(layout), doctest::Contains("ranks call different"),
                         Error);
  });
}

TEST_CASE("a step that is given up ends without the others") {
  run_as_threads(1, 1, [](Communicator& comm) {
    const auto reducer = comm.make_reducer(small_layout(2));
    reducer->begin_step();
    reducer->begin_shard();
  });
  const auto give_up = [] {
    run_as_threads(2, 1, [](Communicator& comm) {
      const ReducerLayout layout = small_layout(2);
      const auto reducer = comm.make_reducer(layout);
      if (comm.rank() == 0) {
        run_step(comm, *reducer, layout, 0);
        return;
      }
      reducer->begin_step();
      reducer->begin_shard();
      fail(ErrorKind::data, "a bad sample");
    });
  };
  CHECK_THROWS_WITH_AS(give_up(), "a bad sample", Error);
}

TEST_CASE("the order of sums does not depend on the size of buckets") {
  std::vector<ReducerLayout> layouts{small_layout(4), small_layout(4)};
  layouts[1].bucket_bytes = 1 << 20;
  const Sums sums = sums_on(4, 2, layouts);
  CHECK(same_bits(sums[0], sums[1]));
}

TEST_CASE("long messages go in pieces") {
  run_as_threads(3, 3, [](Communicator& comm) {
    testing::limit_messages(comm, 40);
    const ReducerLayout layout = small_layout(3);
    const auto reducer = comm.make_reducer(layout);
    const auto result = run_step(comm, *reducer, layout, 0);
    const std::vector<float> sum(result.begin(), result.end());
    CHECK(sum == expected_sum(layout, 0));
  });
}

}  // namespace
}  // namespace annulus
