// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <numeric>
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

// X[n,c,h,w] = 1000n + 100c + 10h + w for 4 samples of 2 x 3 x 5.
std::vector<float> marked(bool channels_last) {
  std::vector<float> values;
  const auto value = [](int n, int c, int h, int w) { return 1000.0F * n + 100 * c + 10 * h + w; };
  for (int n = 0; n < 4; ++n) {
    if (channels_last) {
      for (int h = 0; h < 3; ++h)
        for (int w = 0; w < 5; ++w)
          for (int c = 0; c < 2; ++c) values.push_back(value(n, c, h, w));
    } else {
      for (int c = 0; c < 2; ++c)
        for (int h = 0; h < 3; ++h)
          for (int w = 0; w < 5; ++w) values.push_back(value(n, c, h, w));
    }
  }
  return values;
}

DataDemand image_demand() {
  return demand_of({2, 3, 5}, 4);
}

}  // namespace

TEST_CASE("B13 non-square images keep their axes, from NCHW and NHWC files") {
  const TempDir dir;
  const std::vector<std::int64_t> labels = {0, 1, 2, 3};
  {
    TestFile file(dir / "a.h5");
    file.add<float>("nchw", {4, 2, 3, 5}, H5T_IEEE_F32LE, marked(false));
    file.add<float>("nhwc", {4, 3, 5, 2}, H5T_IEEE_F32LE, marked(true));
    file.add<float>("nhwc_chunked", {4, 3, 5, 2}, H5T_IEEE_F64BE, marked(true),
                    {{3, 2, 2, 1}, true});
    file.add<std::int64_t>("labels", {4}, H5T_STD_I64LE, labels);
  }
  const std::vector<std::int64_t> ids = {3, 0, 1, 2, 3};
  const std::vector<float> all = marked(false);
  for (const std::string path : {"nchw", "nhwc", "nhwc_chunked"}) {
    const char* layout = path == "nchw" ? "NCHW" : "NHWC";
    CAPTURE(path);
    DataSpec spec = spec_of(dir / "a.h5", path, "labels");
    spec.layout = layout;
    const auto dataset = open_dataset(spec, image_demand());
    CHECK(dataset->input_shapes()[0] == Shape{2, 3, 5});
    const ReadBatch batch = read(*dataset, ids);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::vector<float> sample(
          batch.inputs.begin() + static_cast<std::ptrdiff_t>(30 * i),
          batch.inputs.begin() + static_cast<std::ptrdiff_t>(30 * i + 30));
      const std::vector<float> wanted(all.begin() + 30 * ids[i], all.begin() + 30 * ids[i] + 30);
      CHECK(sample == wanted);
    }
    CHECK(batch.class_ids == std::vector<std::int32_t>{3, 0, 1, 2, 3});
  }
}

TEST_CASE("B13 an image set with its axes exchanged is refused with both shapes") {
  const TempDir dir;
  TestFile(dir / "a.h5").add<float>("x", {4, 2, 3, 5}, H5T_IEEE_F32LE, marked(false));
  DataDemand demand = demand_of({2, 5, 3}, 0);
  demand.target_kind = TargetKind::none;
  CHECK(error_of(spec_of(dir / "a.h5", "x", ""), demand) ==
        "data set 'x' of '" + dir / "a.h5" +
            "' with layout NCHW: samples of another shape than the model's input: expected 2x5x3, "
            "found 2x3x5");
}

TEST_CASE("images without a channel axis, and features with axes of size one") {
  const TempDir dir;
  std::vector<float> values(24);
  std::iota(values.begin(), values.end(), 0.0F);
  {
    TestFile file(dir / "a.h5");
    file.add<float>("nhw", {4, 2, 3}, H5T_IEEE_F32LE, values);
    file.add<float>("nf11", {4, 6, 1, 1}, H5T_IEEE_F32LE, values);
  }
  DataDemand demand = demand_of({1, 2, 3}, 0);
  demand.target_kind = TargetKind::none;
  const std::vector<std::int64_t> ids = {1};
  const std::vector<float> second = {6, 7, 8, 9, 10, 11};
  for (const char* layout : {"NCHW", "NHWC"}) {
    DataSpec spec = spec_of(dir / "a.h5", "nhw", "");
    spec.layout = layout;
    CHECK(read(*open_dataset(spec, demand), ids).inputs == second);
  }
  demand.input_shapes = {Shape{6}};
  CHECK(read(*open_dataset(spec_of(dir / "a.h5", "nf11", ""), demand), ids).inputs == second);
  CHECK(error_of(spec_of(dir / "a.h5", "nhw", ""), demand).find("expected 6, found 2x3") !=
        std::string::npos);
}

TEST_CASE("several inputs are matched by name") {
  const TempDir dir;
  {
    TestFile file(dir / "a.h5");
    file.add<float>("a", {2, 1}, H5T_IEEE_F32LE, std::vector<float>{1, 2});
    file.add<float>("b", {2, 2}, H5T_IEEE_F32LE, std::vector<float>{10, 11, 20, 21});
    file.add<float>("c", {3, 2}, H5T_IEEE_F32LE, std::vector<float>(6));
  }
  DataDemand demand;
  demand.input_names = {"left", "right"};
  demand.input_shapes = {Shape{1}, Shape{2}};
  demand.target_kind = TargetKind::none;
  DataSpec spec;
  spec.file = dir / "a.h5";
  spec.inputs = {{"right", "b"}, {"left", "a"}};
  const auto dataset = open_dataset(spec, demand);
  Tensor left(Shape{1, 1}, DType::f32);
  Tensor right(Shape{1, 2}, DType::f32);
  const std::vector<std::int64_t> ids = {1};
  dataset->read(ids, std::vector<TensorView>{left.view(), right.view()}, {});
  CHECK(left.as<float>()[0] == 2);
  CHECK(right.as<float>()[1] == 21);

  spec.inputs[0].dataset = "c";
  CHECK(error_of(spec, demand).find("expected 2, found 3") != std::string::npos);
  spec.inputs = {{"left", "a"}};
  CHECK(error_of(spec, demand).find("no data set for the model's input 'right'") !=
        std::string::npos);
  spec.inputs = {{"left", "a"}, {"right", "b"}, {"third", "b"}};
  CHECK(error_of(spec, demand).find("expected 2, found 3") != std::string::npos);
}

TEST_CASE("float targets of any shape; one that is not finite is named") {
  const TempDir dir;
  {
    TestFile file(dir / "a.h5");
    file.add<float>("x", {3, 1}, H5T_IEEE_F32LE, std::vector<float>{1, 2, 3});
    file.add<double>("y", {3, 2}, H5T_IEEE_F64LE,
                     std::vector<double>{1, 2, 3, 4, 5, std::numeric_limits<double>::infinity()});
    file.add<double>("y1", {3, 1}, H5T_IEEE_F64LE, std::vector<double>{0.5, 1.5, 2.5});
  }
  DataDemand demand = demand_of({1}, 0);
  demand.target_kind = TargetKind::values;
  demand.target_shape = Shape{2};
  const auto dataset = open_dataset(spec_of(dir / "a.h5", "x", "y"), demand);
  CHECK(read(*dataset, std::vector<std::int64_t>{1, 0}).values == std::vector<float>{3, 4, 1, 2});
  CHECK_THROWS_WITH_AS(read(*dataset, std::vector<std::int64_t>{2}),
                       ("data set 'y' of '" + dir / "a.h5" +
                        "': target of sample 2: expected a finite number, found inf")
                           .c_str(),
                       Error);
  CHECK(error_of(spec_of(dir / "a.h5", "x", "y1"), demand).find("expected 2, found 1") !=
        std::string::npos);
  demand.target_shape = Shape{};
  const auto scalars = open_dataset(spec_of(dir / "a.h5", "x", "y1"), demand);
  CHECK(read(*scalars, std::vector<std::int64_t>{2}).values == std::vector<float>{2.5});
}

TEST_CASE("a fingerprint tells contents and types apart, not file names") {
  const TempDir dir;
  const auto write = [&](const std::string& name, std::vector<float> x, std::vector<std::int64_t> y,
                         hid_t type) {
    TestFile file(dir / name);
    file.add<float>("x", {3, 1}, type, x);
    file.add<std::int64_t>("y", {3}, H5T_STD_I64LE, y);
  };
  write("a.h5", {1, 2, 3}, {0, 1, 0}, H5T_IEEE_F32LE);
  write("same.h5", {1, 2, 3}, {0, 1, 0}, H5T_IEEE_F32LE);
  write("inputs.h5", {1, 2, 4}, {0, 1, 0}, H5T_IEEE_F32LE);
  write("labels.h5", {1, 2, 3}, {0, 1, 1}, H5T_IEEE_F32LE);
  write("type.h5", {1, 2, 3}, {0, 1, 0}, H5T_IEEE_F64LE);
  const auto fingerprint = [&](const std::string& name) {
    return open_dataset(spec_of(dir / name, "x", "y"), demand_of({1}, 2))->fingerprint();
  };
  CHECK(fingerprint("a.h5") == fingerprint("same.h5"));
  CHECK(fingerprint("a.h5") != fingerprint("inputs.h5"));
  CHECK(fingerprint("a.h5") != fingerprint("labels.h5"));
  CHECK(fingerprint("a.h5") != fingerprint("type.h5"));
}

TEST_CASE("the stored shapes can be had before the model is known") {
  const TempDir dir;
  TestFile(dir / "a.h5").add<float>("x", {4, 3, 5, 2}, H5T_IEEE_F32LE, marked(true));
  DataSpec spec = spec_of(dir / "a.h5", "x", "");
  spec.layout = "NHWC";
  CHECK(stored_input_shapes(spec) == std::vector<Shape>{Shape{2, 3, 5}});
}
