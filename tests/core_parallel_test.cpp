// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <vector>

#include <doctest/doctest.h>

#include "core/cpu/parallel.h"
#include "core/placement.h"

namespace annulus {

namespace {

// Sets the size of the pool for one test and puts it back.
class Threads {
 public:
  explicit Threads(int threads) : before_(parallel_threads()) { set_parallel_threads(threads); }
  ~Threads() { set_parallel_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

}  // namespace

TEST_CASE("a parallel loop visits all once for many counts and threads") {
  for (int threads : {1, 2, 3, 4, 8}) {
    const Threads pool(threads);
    CHECK(parallel_threads() == threads);
    for (std::int64_t count : {0, 1, 2, 3, 7, 8, 9, 100, 1000}) {
      for (std::int64_t grain : {1, 3, 64, 5000}) {
        std::vector<int> visits(static_cast<std::size_t>(count), 0);
        std::atomic<int> ranges{0};
        parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
          ++ranges;
          for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
        });
        CHECK(std::all_of(visits.begin(), visits.end(), [](int n) { return n == 1; }));
        CHECK(ranges <= std::min<std::int64_t>(threads, (count + grain - 1) / grain));
      }
    }
  }
}

TEST_CASE("each part of a region runs once") {
  const Threads pool(4);
  std::vector<int> seen(4, 0);
  std::pair<std::vector<int>*, int> context(&seen, 0);
  parallel_run(
      [](void* raw, int part, int parts) {
        auto& state = *static_cast<std::pair<std::vector<int>*, int>*>(raw);
        ++(*state.first)[static_cast<std::size_t>(part)];
        if (part == 0) state.second = parts;
      },
      &context);
  CHECK(seen == std::vector<int>{1, 1, 1, 1});
  CHECK(context.second == 4);
}

TEST_CASE("a loop within a loop is done by its own thread, whole") {
  const Threads pool(3);
  std::vector<int> sums(6, 0);
  parallel_for(6, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      parallel_for(100, 1, [&](std::int64_t from, std::int64_t to) {
        sums[static_cast<std::size_t>(i)] += static_cast<int>(to - from);
      });
    }
  });
  CHECK(sums == std::vector<int>(6, 100));
}

TEST_CASE("ranges are even and cover all") {
  for (std::int64_t count : {0, 1, 5, 16, 17}) {
    for (int parts = 1; parts <= 9; ++parts) {
      std::int64_t end = 0;
      for (int part = 0; part < parts; ++part) {
        const Range range = split_range(count, part, parts);
        CHECK(range.begin == end);
        CHECK(range.end - range.begin >= count / parts);
        CHECK(range.end - range.begin <= count / parts + 1);
        end = range.end;
      }
      CHECK(end == count);
    }
  }
}

TEST_CASE("a placement binds the thread and sizes the pool") {
  const Threads pool(1);
  const std::vector<int> all = allowed_cores();
  REQUIRE_FALSE(all.empty());
  CHECK(std::is_sorted(all.begin(), all.end()));
  Placement placement;
  placement.cores = {all.back()};
  placement.threads = 2;
  apply(placement);
  CHECK(allowed_cores() == placement.cores);
  CHECK(parallel_threads() == 2);
  placement.cores = all;
  apply(placement);
  CHECK(allowed_cores() == all);
}

}  // namespace annulus
