// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "io/dataset.h"
#include "io/loader.h"
#include "support/hdf5_writer.h"
#include "support/io_data.h"
#include "support/temp_dir.h"

using namespace annulus;
using namespace annulus::test;

namespace {

// Resident memory of this process, in bytes.
std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t pages = 0;
  file >> pages >> pages;
  return pages * 4096;
}

}  // namespace

TEST_CASE("B34 more than 2^31 elements: the last sample is right and memory stays small") {
  constexpr hsize_t samples = 60'000;
  constexpr std::size_t values = 3 * 112 * 112;
  const TempDir dir;
  std::vector<std::uint8_t> first(values);
  std::iota(first.begin(), first.end(), std::uint8_t{1});
  std::vector<std::uint8_t> last(values);
  std::iota(last.begin(), last.end(), std::uint8_t{77});
  std::vector<std::uint8_t> labels(samples, 0);
  labels.back() = 9;
  {
    TestFile file(dir / "a.h5");
    file.add_empty("x", {samples, 3, 112, 112}, H5T_STD_U8LE, {{1, 3, 112, 112}, true});
    file.add_empty("x4", {samples, 3, 112, 112}, H5T_IEEE_F32LE, {{4, 3, 112, 112}, false});
    for (const char* path : {"x", "x4"}) {
      file.write_row(path, 0, first);
      file.write_row(path, samples - 1, last);
    }
    file.add<std::uint8_t>("labels", {samples}, H5T_STD_U8LE, labels);
  }
  const std::int64_t before = resident_bytes();
  for (const char* path : {"x", "x4"}) {
    CAPTURE(path);
    const auto dataset =
        open_dataset(spec_of(dir / "a.h5", path, "labels"), demand_of({3, 112, 112}, 10));
    CHECK(dataset->size() == 60'000);
    const Sampler sampler(dataset->size(), true, 3);
    LoaderOptions options;
    options.max_count = 8;
    Loader loader(
        *dataset, sampler,
        [](std::int64_t index) -> std::optional<Slice> {
          if (index == 10) return std::nullopt;
          return Slice{index, 0, index * 8, 8};
        },
        options);
    int batches = 0;
    while (loader.next() != nullptr) ++batches;
    CHECK(batches == 10);

    const ReadBatch batch = read(*dataset, std::vector<std::int64_t>{59'999, 0, 30'000});
    CHECK(batch.class_ids == std::vector<std::int32_t>{9, 0, 0});
    CHECK(batch.inputs[0] == 77);
    CHECK(batch.inputs[values - 1] == last[values - 1]);
    CHECK(batch.inputs[values] == 1);
    CHECK(batch.inputs[2 * values] == 0);
  }
  CHECK(resident_bytes() - before < std::int64_t{200} << 20);
}

TEST_CASE("B34 a contiguous data set is read at places beyond 4 GiB") {
  constexpr hsize_t samples = 70'000;
  const TempDir dir;
  std::vector<float> row(16'384, 0);
  row[16'383] = 42;
  {
    TestFile file(dir / "a.h5");
    file.add_empty("x", {samples, 16'384}, H5T_IEEE_F32LE);  // 4.6 GB, of which a row is stored
    file.write_row("x", samples - 1, row);
  }
  DataDemand demand = demand_of({16'384}, 0);
  demand.target_kind = TargetKind::none;
  const auto dataset = open_dataset(spec_of(dir / "a.h5", "x", ""), demand);
  CHECK(read(*dataset, std::vector<std::int64_t>{69'999}).inputs == row);
}
