// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <doctest/doctest.h>

#include "core/error.h"
#include "train/batch_plan.h"

namespace annulus {
namespace {

std::vector<std::int64_t> counts(const BatchPlan& plan, std::int64_t iteration) {
  std::vector<std::int64_t> list;
  for (std::int64_t s = 0; s < plan.shards(); ++s) list.push_back(plan.slice(iteration, s).count);
  return list;
}

using Counts = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("a batch is cut into shards by the floor rule") {
  CHECK(counts(BatchPlan(10, 10, 4, false), 0) == Counts{2, 3, 2, 3});
  CHECK(counts(BatchPlan(10, 10, 7, false), 0) == Counts{1, 1, 2, 1, 2, 1, 2});
  CHECK(counts(BatchPlan(64, 64, 4, false), 0) == Counts{16, 16, 16, 16});
}

TEST_CASE("the last batch of an epoch has what is left") {
  const BatchPlan plan(37, 8, 4, false);
  CHECK(plan.steps_per_epoch() == 5);
  CHECK(plan.batch_size(3) == 8);
  CHECK(plan.batch_size(4) == 5);
  CHECK(plan.batch_size(5) == 8);
  CHECK(plan.batch_size(9) == 5);
  CHECK(plan.epoch_of(4) == 0);
  CHECK(plan.epoch_of(5) == 1);
  CHECK(counts(plan, 4) == Counts{1, 1, 1, 2});
  const Slice last = plan.slice(9, 3);
  CHECK(last.iteration == 9);
  CHECK(last.epoch == 1);
  CHECK(last.first == 35);
  CHECK(last.count == 2);
}

TEST_CASE("a short last batch leaves shards without samples") {
  const BatchPlan plan(10, 8, 4, false);
  CHECK(counts(plan, 1) == Counts{0, 1, 0, 1});
  CHECK(plan.slice(1, 1).first == 8);
  CHECK(plan.slice(1, 3).first == 9);
  CHECK(counts(BatchPlan(3, 3, 5, false), 0) == Counts{0, 1, 0, 1, 1});
}

TEST_CASE("drop_last leaves the partial batch out") {
  const BatchPlan plan(37, 8, 4, true);
  CHECK(plan.steps_per_epoch() == 4);
  for (std::int64_t i = 0; i < 8; ++i) CHECK(plan.batch_size(i) == 8);
  CHECK(plan.slice(4, 0).epoch == 1);
  CHECK(plan.slice(4, 0).first == 0);
}

TEST_CASE("B44 a data set smaller than a batch is one step, or none and an error") {
  const BatchPlan plan(10, 64, 4, false);
  CHECK(plan.steps_per_epoch() == 1);
  CHECK(plan.batch_size(0) == 10);
  CHECK(counts(plan, 0) == Counts{2, 3, 2, 3});
  CHECK_THROWS_WITH_AS(BatchPlan(10, 64, 4, true),
                       "0 steps per epoch: 10 samples < global batch 64; set data.drop_last = "
                       "false or a smaller batch.global",
                       Error);
  CHECK_THROWS_WITH_AS(BatchPlan(0, 64, 4, false), "0 steps per epoch: 0 samples < global batch 64",
                       Error);
  try {
    const BatchPlan none(10, 64, 1, true);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.exit_code() == 2);
  }
}

TEST_CASE("the slices of an epoch are a partition of its samples, whatever the numbers") {
  for (std::int64_t samples : {1, 2, 7, 64, 100}) {
    for (std::int64_t global : {1, 3, 8, 64, 1000}) {
      for (std::int64_t shards : {1, 2, 3, 8, 64}) {
        CAPTURE(samples);
        CAPTURE(global);
        CAPTURE(shards);
        const BatchPlan plan(samples, global, shards, false);
        std::int64_t next = 0;
        for (std::int64_t i = 0; i < plan.steps_per_epoch(); ++i) {
          for (std::int64_t s = 0; s < shards; ++s) {
            const Slice slice = plan.slice(i, s);
            REQUIRE(slice.first == next);
            next += slice.count;
          }
        }
        CHECK(next == samples);
      }
    }
  }
}

TEST_CASE("the sizes that shards can have are known beforehand") {
  for (bool drop_last : {false, true}) {
    for (std::int64_t samples : {8, 10, 37, 64}) {
      const BatchPlan plan(samples, 8, 5, drop_last);
      for (const Span64 own : {Span64{0, 5}, Span64{1, 3}, Span64{4, 5}, Span64{2, 2}}) {
        std::vector<bool> seen(9);
        for (std::int64_t i = 0; i < 2 * plan.steps_per_epoch(); ++i) {
          for (std::int64_t s = own.begin; s < own.end; ++s) {
            seen[static_cast<std::size_t>(plan.slice(i, s).count)] = true;
          }
        }
        Counts expected;
        for (std::int64_t size = 1; size <= 8; ++size) {
          if (seen[static_cast<std::size_t>(size)]) expected.push_back(size);
        }
        CAPTURE(samples);
        CAPTURE(own.begin);
        CHECK(plan.shard_sizes(own) == expected);
      }
    }
  }
  // The full batch never occurs.
  CHECK(BatchPlan(10, 64, 4, false).shard_sizes({0, 4}) == Counts{2, 3});
}

TEST_CASE("plans are exact for counts beyond 32 bits") {
  constexpr std::int64_t samples = std::int64_t{1} << 40;
  const BatchPlan plan(samples, 1000, 7, false);
  CHECK(plan.steps_per_epoch() == 1099511628);  // and the last batch is one of 776
  constexpr std::int64_t iteration = 3000000000;
  CHECK(plan.epoch_of(iteration) == 2);
  CHECK(plan.slice(iteration, 6).first == 800976744857);
  CHECK(plan.slice(iteration, 6).count == 143);
  CHECK(plan.batch_size(1099511627) == 776);

  const BatchPlan huge(INT64_MAX, INT64_MAX, 3, false);
  CHECK(huge.steps_per_epoch() == 1);
  CHECK(huge.slice(2999999999, 2).first == 6148914691236517204);
  CHECK(huge.slice(2999999999, 2).count == 3074457345618258603);
  const BatchPlan most(INT64_MAX, INT64_MAX - 1, 1, false);
  CHECK(most.steps_per_epoch() == 2);
  CHECK(most.slice(1, 0).first == INT64_MAX - 1);
  CHECK(most.slice(1, 0).count == 1);
}

TEST_CASE("a plan of no batch or no shards is a bug") {
  CHECK_THROWS_AS(BatchPlan(10, 0, 1, false), Error);
  CHECK_THROWS_AS(BatchPlan(10, 1, 0, false), Error);
  CHECK_THROWS_AS(BatchPlan(-1, 1, 1, false), Error);
}

}  // namespace annulus
