// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "comm/comm_spec.h"
#include "comm/gradient_reducer.h"
#include "comm/sum_tree.h"
#include "core/error.h"

namespace annulus {
namespace {

using Numbers = std::vector<std::int64_t>;

Numbers borders(const std::vector<Bucket>& buckets) {
  Numbers ends{0};
  for (const Bucket& bucket : buckets) {
    CHECK(bucket.begin == ends.back());
    ends.push_back(bucket.end);
  }
  return ends;
}

// Sizes in elements, limits in elements too.
Numbers plan(const Numbers& tensors, std::int64_t tail, std::int64_t bucket, std::int64_t last) {
  return borders(plan_buckets(tensors, tail, 4 * bucket, 4 * last));
}

TEST_CASE("a bucket is closed before it exceeds its size, and the last one is small") {
  CHECK(plan({30, 30, 30, 30, 30, 5, 5}, 2, 100, 15) == Numbers{0, 90, 150, 162});
  CHECK(plan({50, 50, 50, 50}, 0, 100, 50) == Numbers{0, 100, 150, 200});
}

TEST_CASE("a tensor larger than a bucket has one of its own") {
  CHECK(plan({10, 500, 10, 10}, 1, 100, 15) == Numbers{0, 10, 510, 520, 531});
  CHECK(plan({10, 500}, 1, 100, 15) == Numbers{0, 10, 510, 511});
}

TEST_CASE("the last bucket holds a tensor even where that is larger than it should be") {
  CHECK(plan({60, 60}, 0, 100, 10) == Numbers{0, 60, 120});
  CHECK(plan({60, 60}, 3, 100, 10) == Numbers{0, 60, 123});
  CHECK(plan({500}, 0, 100, 10) == Numbers{0, 500});
}

TEST_CASE("buckets of nothing, of a tail alone and of empty tensors") {
  CHECK(plan({}, 0, 100, 10) == Numbers{0});
  CHECK(plan({}, 7, 100, 10) == Numbers{0, 7});
  CHECK(plan({0, 0}, 0, 100, 10) == Numbers{0});
  CHECK(plan({0, 50, 0, 50, 0}, 0, 100, 50) == Numbers{0, 50, 100});
}

TEST_CASE("a bucket plan refuses senseless sizes") {
  CHECK_THROWS_WITH_AS(plan({-1}, 0, 1, 1), "a gradient of -1 elements", Error);
  CHECK_THROWS_AS(plan({1}, 0, 0, 1), Error);
  CHECK_THROWS_AS(plan({1}, -1, 1, 1), Error);
}

TEST_CASE("bucket sizes over 2^31 elements") {
  const std::int64_t big = std::int64_t{3} << 31;
  CHECK(plan({big, big, 1}, 0, 100, 10) == Numbers{0, big, 2 * big, 2 * big + 1});
}

TEST_CASE("the branches of the tree over seven shards") {
  // ((0 1) (2 3)) ((4 5) 6)
  const std::vector<Span64> branches{{0, 7}, {0, 4}, {4, 7}, {0, 2}, {2, 4}, {4, 6}, {0, 1},
                                     {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}, {6, 7}};
  int found = 0;
  for (std::int64_t begin = 0; begin < 7; ++begin) {
    for (std::int64_t end = begin + 1; end <= 7; ++end) {
      const bool expected = std::any_of(branches.begin(), branches.end(), [&](const Span64& b) {
        return b.begin == begin && b.end == end;
      });
      CHECK(is_branch(7, {begin, end}) == expected);
      found += expected ? 1 : 0;
    }
  }
  CHECK(found == 13);
}

bool exact(std::int64_t shards, const std::vector<int>& ranks_by_node) {
  return sum_is_exact(shards, ranks_by_node);
}

TEST_CASE("sums of powers of two are exact on any powers of two") {
  for (int shards = 1; shards <= 64; shards *= 2) {
    for (int ranks = 1; ranks <= 64; ranks *= 2) {
      CHECK(exact(shards, {ranks}));
      if (ranks >= 2) CHECK(exact(shards, {ranks / 2, ranks / 2}));
      CHECK(exact(shards, std::vector<int>(static_cast<std::size_t>(ranks), 1)));
    }
  }
}

TEST_CASE("sums are exact where each rank has one branch of the tree") {
  CHECK(exact(4, {3}));
  CHECK(exact(4, {5}));
  CHECK(exact(4, {2, 1}));
  CHECK(exact(4, {1, 1, 1}));
  CHECK(exact(4, {1, 1, 1, 1, 1}));
  for (int shards = 1; shards <= 16; ++shards) CHECK(exact(shards, {64}));
}

TEST_CASE("sums are not exact where a rank's shards are no branch of the tree") {
  CHECK_FALSE(exact(8, {3}));        // 2 3 4 are summed first
  CHECK_FALSE(exact(6, {2}));        // 0 1 2
  CHECK_FALSE(exact(4, {2, 2, 1}));  // 1 2 on the second node
}

TEST_CASE("the keys of comm and their limits") {
  CommSpec spec;
  const Schema schema = describe(spec);
  std::vector<std::string> names;
  for (const Key& key : schema.keys()) names.push_back(key.name());
  CHECK(names == std::vector<std::string>{"backend", "algorithm", "timeout_s", "bucket_mb",
                                          "last_bucket_mb"});
  const auto problems_of = [&](const char* key, double number) {
    Value table;
    table.set(key, Value{number, {}});
    Problems problems;
    schema.fill(table, "comm", problems);
    return problems.count();
  };
  CHECK(problems_of("timeout_s", 0) == 0);
  CHECK(problems_of("timeout_s", -1) == 1);
  CHECK(problems_of("bucket_mb", 0.5) == 0);
  CHECK(problems_of("bucket_mb", 0) == 1);
  CHECK(problems_of("last_bucket_mb", 0) == 1);
  CHECK(spec.bucket_mb == 0.5);
}

}  // namespace
}  // namespace annulus
