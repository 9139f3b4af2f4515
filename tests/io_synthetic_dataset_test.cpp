// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.h"
#include "io/dataset.h"
#include "support/io_data.h"

using namespace annulus;
using namespace annulus::test;

namespace {

std::vector<std::int64_t> first(std::int64_t count) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), std::int64_t{0});
  return ids;
}

}  // namespace

TEST_CASE("synthetic samples are functions of seed and sample") {
  const auto a = make_synthetic_dataset(demand_of({3, 4, 5}, 10), 1000, 1);
  const auto same = make_synthetic_dataset(demand_of({3, 4, 5}, 10), 500, 1);
  const auto other = make_synthetic_dataset(demand_of({3, 4, 5}, 10), 1000, 2);
  CHECK(a->size() == 1000);
  CHECK(a->input_shapes()[0] == Shape{3, 4, 5});
  const std::vector<std::int64_t> ids = {400, 7, 0};
  CHECK(read(*a, ids).inputs == read(*same, ids).inputs);
  CHECK(read(*a, ids).class_ids == read(*same, ids).class_ids);
  CHECK(read(*a, ids).inputs != read(*other, ids).inputs);
  CHECK(read(*a, first(1)).inputs != read(*a, std::vector<std::int64_t>{1}).inputs);
  CHECK(a->fingerprint() != other->fingerprint());
  CHECK(a->fingerprint() != same->fingerprint());
}

TEST_CASE("synthetic inputs are standard normal and labels are all classes") {
  const auto dataset = make_synthetic_dataset(demand_of({3, 32, 32}, 7), 64, 5);
  const ReadBatch batch = read(*dataset, first(64));
  double sum = 0;
  double squares = 0;
  for (float value : batch.inputs) {
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  const auto count = static_cast<double>(batch.inputs.size());
  CHECK(std::abs(sum / count) < 0.01);  // four standard deviations are 0.009
  CHECK(std::abs(squares / count - 1) < 0.013);
  CHECK(std::set<std::int32_t>(batch.class_ids.begin(), batch.class_ids.end()) ==
        std::set<std::int32_t>{0, 1, 2, 3, 4, 5, 6});
}

TEST_CASE("synthetic float targets, and none") {
  DataDemand demand = demand_of({2}, 0);
  demand.target_kind = TargetKind::values;
  demand.target_shape = Shape{3};
  CHECK(read(*make_synthetic_dataset(demand, 10, 1), first(2)).values.size() == 6);
  demand.target_kind = TargetKind::none;
  CHECK(read(*make_synthetic_dataset(demand, 10, 1), first(2)).inputs.size() == 4);
}

TEST_CASE("a synthetic data set needs samples and classes") {
  CHECK_THROWS_WITH_AS(make_synthetic_dataset(demand_of({2}, 3), 0, 1),
                       doctest::Contains("data.samples >= 1, not 0"), Error);
  CHECK_THROWS_AS(make_synthetic_dataset(demand_of({2}, 0), 3, 1), Error);
}
