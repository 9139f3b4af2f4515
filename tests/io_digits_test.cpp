// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include "io/data_file.h"
#include "io/dataset.h"
#include "support/io_data.h"

using namespace annulus;
using namespace annulus::test;

namespace {

ReadBatch whole_part(const std::string& part, std::int64_t size) {
  const auto dataset =
      open_dataset(spec_of(ANNULUS_DATA_DIR "/digits.h5", part + "/images", part + "/labels"),
                   demand_of({1, 8, 8}, 10));
  REQUIRE(dataset->size() == size);
  std::vector<std::int64_t> ids(static_cast<std::size_t>(size));
  std::iota(ids.begin(), ids.end(), std::int64_t{0});
  return read(*dataset, ids);
}

std::vector<std::int64_t> count_classes(const ReadBatch& batch) {
  std::vector<std::int64_t> counts(10);
  for (std::int32_t label : batch.class_ids) ++counts[static_cast<std::size_t>(label)];
  return counts;
}

}  // namespace

TEST_CASE("the digits are 1437 and 360 images of 8 x 8 with a fifth of every class for the test") {
  const ReadBatch train = whole_part("train", 1437);
  const ReadBatch test = whole_part("test", 360);
  CHECK(count_classes(train) ==
        std::vector<std::int64_t>{142, 145, 142, 146, 145, 146, 145, 143, 139, 144});
  CHECK(count_classes(test) == std::vector<std::int64_t>{36, 37, 35, 37, 36, 36, 36, 36, 35, 36});
  const std::vector<DatasetReport> reports = verify_file(ANNULUS_DATA_DIR "/digits.h5");
  REQUIRE(reports.size() == 4);
  CHECK(reports[2].minimum == 0);
  CHECK(reports[2].maximum == 16);
}
