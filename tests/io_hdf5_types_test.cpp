// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.h"
#include "io/dataset.h"
#include "support/hdf5_writer.h"
#include "support/io_data.h"
#include "support/temp_dir.h"

using namespace annulus;
using namespace annulus::test;

namespace {

const std::vector<float> values = {0, 1, -2, 0.5F, 255, 16};  // exact in all of the types below

DataDemand no_targets() {
  DataDemand demand = demand_of({2}, 0);
  demand.target_kind = TargetKind::none;
  return demand;
}

// The error of three samples with the labels of data set `path`.
std::string label_error(const TempDir& dir, const std::string& path) {
  return error_of(spec_of(dir / "a.h5", "x", path), demand_of({1}, 10));
}

}  // namespace

TEST_CASE("B35 floats and integers of every size and byte order read as the same inputs") {
  const TempDir dir;
  const std::vector<float> whole = {0, 1, 2, 3, 100, 16};
  {
    TestFile file(dir / "a.h5");
    file.add<float>("f4", {3, 2}, H5T_IEEE_F32LE, values);
    file.add<float>("f4be", {3, 2}, H5T_IEEE_F32BE, values);
    file.add<float>("f8", {3, 2}, H5T_IEEE_F64LE, values);
    file.add<float>("f8be", {3, 2}, H5T_IEEE_F64BE, values);
    file.add<float>("f2", {3, 2}, half_type(false), values);
    file.add<float>("f2be", {3, 2}, half_type(true), values);
    file.add<float>("f4_deflate", {3, 2}, H5T_IEEE_F32BE, values, {{2, 1}, true});
    int number = 0;
    for (hid_t type : {H5T_STD_U8LE, H5T_STD_I8LE, H5T_STD_U16LE, H5T_STD_I16BE, H5T_STD_U32BE,
                       H5T_STD_I32LE, H5T_STD_U64LE, H5T_STD_I64BE}) {
      file.add<float>("whole" + std::to_string(number++), {3, 2}, type, whole);
    }
  }
  const std::vector<std::int64_t> ids = {0, 1, 2};
  for (const char* path : {"f4", "f4be", "f8", "f8be", "f2", "f2be", "f4_deflate"}) {
    CAPTURE(path);
    CHECK(read(*open_dataset(spec_of(dir / "a.h5", path, ""), no_targets()), ids).inputs == values);
  }
  for (int i = 0; i < 8; ++i) {
    CAPTURE(i);
    const DataSpec spec = spec_of(dir / "a.h5", "whole" + std::to_string(i), "");
    CHECK(read(*open_dataset(spec, no_targets()), ids).inputs == whole);
  }
}

TEST_CASE("B35 numbers with unused bits are converted by the library") {
  const TempDir dir;
  const hid_t twelve_bits = H5Tcopy(H5T_STD_U16LE);
  H5Tset_precision(twelve_bits, 12);
  const hid_t brain = H5Tcopy(H5T_IEEE_F32LE);  // bf16
  H5Tset_fields(brain, 15, 7, 8, 0, 7);
  H5Tset_size(brain, 2);
  {
    TestFile file(dir / "a.h5");
    file.add<float>("u12", {1, 2}, twelve_bits, std::vector<float>{4095, 7});
    file.add<float>("bf16", {1, 2}, brain, std::vector<float>{-1.5F, 0x1p100F});
  }
  H5Tclose(twelve_bits);
  H5Tclose(brain);
  const std::vector<std::int64_t> ids = {0};
  CHECK(read(*open_dataset(spec_of(dir / "a.h5", "u12", ""), no_targets()), ids).inputs ==
        std::vector<float>{4095, 7});
  CHECK(read(*open_dataset(spec_of(dir / "a.h5", "bf16", ""), no_targets()), ids).inputs ==
        std::vector<float>{-1.5F, 0x1p100F});
}

TEST_CASE("B35 labels of usable types") {
  const TempDir dir;
  const std::vector<float> labels = {3, 0, 9};
  {
    TestFile file(dir / "a.h5");
    file.add<float>("x", {3, 1}, H5T_IEEE_F32LE, std::vector<float>{1, 2, 3});
    file.add<float>("i1", {3}, H5T_STD_I8LE, labels);
    file.add<float>("u8", {3}, H5T_STD_U64BE, labels);
    file.add<float>("f4", {3}, H5T_IEEE_F32LE, labels);
    file.add<float>("column", {3, 1}, H5T_STD_I64LE, labels);
    file.add<float>("chunked", {3}, H5T_STD_U16LE, labels, {{2}, true});
    file.add_bool("bool", {1, 0, 1});
  }
  const std::vector<std::int64_t> ids = {2, 0, 1};
  for (const char* path : {"i1", "u8", "f4", "column", "chunked"}) {
    CAPTURE(path);
    const auto dataset = open_dataset(spec_of(dir / "a.h5", "x", path), demand_of({1}, 10));
    CHECK(read(*dataset, ids).class_ids == std::vector<std::int32_t>{9, 3, 0});
  }
  const auto dataset = open_dataset(spec_of(dir / "a.h5", "x", "bool"), demand_of({1}, 2));
  CHECK(read(*dataset, ids).class_ids == std::vector<std::int32_t>{1, 1, 0});
}

TEST_CASE("B35 labels of unusable types are refused with the first bad index") {
  const TempDir dir;
  std::vector<double> fractions(20, 3.0);
  fractions[17] = 3.5;
  fractions[18] = 99;
  std::vector<std::int64_t> large(20, 1);
  large[4] = 3'000'000'000;
  std::vector<std::uint64_t> huge(20, 1);
  huge[19] = ~std::uint64_t{0};
  {
    TestFile file(dir / "a.h5");
    file.add<float>("x", {20, 1}, H5T_IEEE_F32LE, std::vector<float>(20));
    file.add<double>("fractions", {20}, H5T_IEEE_F32LE, fractions);
    file.add<std::int64_t>("large", {20}, H5T_STD_I64LE, large);
    file.add<std::uint64_t>("huge", {20}, H5T_STD_U64LE, huge);
    file.add<std::int64_t>("one_hot", {20, 10}, H5T_STD_I64LE, std::vector<std::int64_t>(200));
    file.add_strings("strings", std::vector<std::string>(20, "cat"));
    file.add_compound("compound", 20);
  }
  const std::string of = "' of '" + dir / "a.h5" + "': ";
  CHECK(label_error(dir, "fractions") ==
        "data set 'fractions" + of +
            "element type f32, first bad index 17: the label: expected 0 to 9, found 3.5");
  CHECK(label_error(dir, "large") ==
        "data set 'large" + of +
            "element type i64, first bad index 4: the label: expected 0 to 9, found 3000000000");
  CHECK(label_error(dir, "huge")
            .find("first bad index 19: the label: expected 0 to 9, found "
                  "18446744073709551615") != std::string::npos);
  CHECK(label_error(dir, "one_hot")
            .find("one-hot rows are not taken: store argmax(axis=1): "
                  "expected 20 or 20x1, found 20x10") != std::string::npos);
  CHECK(label_error(dir, "strings") ==
        "data set 'strings" + of +
            "element type variable-length string is not usable; numbers are needed");
  CHECK(label_error(dir, "compound") ==
        "data set 'compound" + of + "element type compound is not usable; numbers are needed");
}

TEST_CASE("labels out of range are found wherever they are, but for the ignored one") {
  const TempDir dir;
  std::vector<std::uint8_t> labels(300'000, 1);
  labels[0] = 255;
  labels[299'999] = 10;
  {
    TestFile file(dir / "a.h5");
    file.add_empty("x", {300'000, 1}, H5T_STD_U8LE);
    file.add<std::uint8_t>("labels", {300'000}, H5T_STD_U8LE, labels, {{1000}, true});
  }
  const DataSpec spec = spec_of(dir / "a.h5", "x", "labels");
  DataDemand demand = demand_of({1}, 10);
  CHECK(error_of(spec, demand).find("first bad index 0: the label: expected 0 to 9, found 255") !=
        std::string::npos);
  demand.has_ignore_index = true;
  demand.ignore_index = 255;
  CHECK(error_of(spec, demand)
            .find("first bad index 299999: the label: expected 0 to 9 or 255 (ignore_index), found "
                  "10") != std::string::npos);
  demand.classes = 11;
  CHECK(error_of(spec, demand).empty());
  const std::vector<std::int64_t> ids = {299'999, 0};
  CHECK(read(*open_dataset(spec, demand), ids).class_ids == std::vector<std::int32_t>{10, 255});
}
