// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <hdf5.h>

#include "core/error.h"
#include "io/checkpoint.h"
#include "support/checkpoint_state.h"
#include "support/temp_dir.h"

using namespace annulus;
using namespace annulus::test;
namespace fs = std::filesystem;

TEST_CASE("a checkpoint gives back every tensor, scalar and text, bit for bit") {
  const TempDir dir;
  SmallState saved(1);
  const std::string path = save_checkpoint(dir / "ckpt", meta_of(100), saved.state());
  CHECK(path == dir / "ckpt/step_0000000100");

  SmallState loaded(2);
  load_checkpoint(path, loaded.state(), false);
  CHECK(loaded == saved);
  verify_checkpoint(path);

  const CheckpointInfo info = read_checkpoint_info(path);
  CHECK(info.meta.step == 100);
  CHECK(info.meta.config == "name = \"ü\"\n");
  CHECK(info.meta.data == "fingerprint");
  CHECK(info.meta.versions == "annulus 0");
  REQUIRE(info.tensors.size() == 4);
  CHECK(info.tensors[0].name == "conv1/weight");
  CHECK(info.tensors[0].shape == Shape{2, 3});
  CHECK(info.tensors[0].dtype == DType::f32);
  CHECK(info.tensors[0].checksum.size() == 16);
  CHECK(info.scalars == std::vector<std::pair<std::string, std::string>>{
                            {"update", "9007199254740993"}, {"scale", "0.1"}, {"kind", "sgd"}});
  CHECK(info.bytes > 0);
}

TEST_CASE("doubles of a checkpoint keep their bits, also those that JSON has no number for") {
  const TempDir dir;
  double values[] = {std::numeric_limits<double>::infinity(), -0.0, 5e-324, 1.0 / 3};
  NamedState state;
  for (int i = 0; i < 4; ++i) state.add("value" + std::to_string(i), &values[i]);
  double nan = std::nan("");
  state.add("nan", &nan);
  const std::string path = save_checkpoint(dir.path(), meta_of(1), state);
  const std::vector<double> wanted(values, values + 4);
  for (double& value : values) value = 7;
  nan = 7;
  load_checkpoint(path, state, false);
  CHECK(std::memcmp(values, wanted.data(), sizeof values) == 0);
  CHECK(std::isnan(nan));
}

TEST_CASE("tensors are plain HDF5: groups by name, shapes and little-endian elements") {
  const TempDir dir;
  SmallState saved(1);
  const std::string path = save_checkpoint(dir.path(), meta_of(7), saved.state());
  const hid_t file = H5Fopen((path + "/tensors.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  REQUIRE(file >= 0);
  const hid_t weight = H5Dopen2(file, "conv1/weight", H5P_DEFAULT);
  REQUIRE(weight >= 0);
  std::vector<float> values(6);
  CHECK(H5Dread(weight, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
  CHECK(values == saved.weight);
  const hid_t type = H5Dget_type(weight);
  CHECK(H5Tequal(type, H5T_IEEE_F32LE) > 0);
  H5Tclose(type);
  H5Dclose(weight);
  H5Fclose(file);
}

TEST_CASE("all element types, scalars and empty tensors are kept") {
  const TempDir dir;
  std::vector<Tensor> tensors;
  std::vector<Tensor> others;
  NamedState state;
  NamedState other;
  const std::vector<Shape> shapes = {{3, 5}, {}, {0, 4}};
  for (DType dtype :
       {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8}) {
    for (const Shape& shape : shapes) {
      tensors.emplace_back(shape, dtype);
      others.emplace_back(shape, dtype);
    }
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorView view = tensors[i].view();
    for (std::size_t b = 0; b < view.bytes(); ++b) {
      static_cast<std::uint8_t*>(view.data)[b] = static_cast<std::uint8_t>(b * 37 + i);
    }
    state.add(fmt::format("t{}", i), view);
    other.add(fmt::format("t{}", i), others[i].view());
  }
  const std::string path = save_checkpoint(dir.path(), meta_of(1), state);
  load_checkpoint(path, other, false);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorView a = tensors[i].view();
    CHECK((a.bytes() == 0 || std::memcmp(a.data, others[i].view().data, a.bytes()) == 0));
  }
}

TEST_CASE("equal states give equal bytes") {
  const TempDir dir;
  SmallState saved(1);
  const std::string a = save_checkpoint(dir / "a", meta_of(1), saved.state());
  const std::string b = save_checkpoint(dir / "b", meta_of(1), saved.state());
  for (const char* name : {"/tensors.h5", "/manifest.json"}) {
    CHECK(contents_of(a + name) == contents_of(b + name));
  }
  CHECK(diff_checkpoints(a, b).empty());
}

TEST_CASE("a checkpoint of the same step is replaced as a whole; leftovers go away") {
  const TempDir dir;
  fs::create_directories(dir / ".tmp_step_0000000003_99");
  std::ofstream(dir / ".tmp_step_0000000003_99/tensors.h5") << "half";
  SmallState first(1);
  SmallState second(2);
  const std::string path = save_checkpoint(dir.path(), meta_of(5), first.state());
  CHECK(save_checkpoint(dir.path(), meta_of(5), second.state()) == path);
  CHECK(dir.names() == std::vector<std::string>{"step_0000000005"});
  SmallState loaded(3);
  load_checkpoint(path, loaded.state(), false);
  CHECK(loaded == second);
}

TEST_CASE("B40 the latest checkpoint is found by number; all else is ignored and listed") {
  const TempDir dir;
  SmallState state(1);
  CHECK_FALSE(latest_checkpoint(dir / "none", nullptr));
  CHECK_FALSE(latest_checkpoint(dir.path(), nullptr));
  for (std::int64_t step : {1000, 900}) save_checkpoint(dir.path(), meta_of(step), state.state());
  const std::string large = save_checkpoint(dir.path(), meta_of(20'000'000'000), state.state());
  fs::create_directories(dir / "step_0000099999");  // without a manifest
  fs::create_directories(dir / ".tmp_step_0000002000_1");
  for (const char* name : {"latest_old", "step_abc", "step_0000000950x", "step_99", "step_"}) {
    fs::create_directories(dir / name);
  }
  std::vector<std::string> ignored;
  CHECK(latest_checkpoint(dir.path(), &ignored) == large);
  CHECK(ignored == std::vector<std::string>{".tmp_step_0000002000_1", "latest_old", "step_",
                                            "step_0000000950x", "step_0000099999", "step_99",
                                            "step_abc"});
  fs::remove_all(large);
  CHECK(latest_checkpoint(dir.path(), nullptr) == dir / "step_0000001000");
}

TEST_CASE("a difference names the first tensor by name and how far it is apart") {
  const TempDir dir;
  SmallState saved(1);
  const auto save = [&](const char* name) {
    return save_checkpoint(dir / name, meta_of(1), saved.state());
  };
  const std::string a = save("a");
  saved.weight[4] += 0.5F;
  saved.counts[0] = 50;
  const std::string b = save("b");
  // weight[4] of state 1 is 1.5.
  CHECK(diff_checkpoints(a, b) ==
        "tensor 'conv1/weight': 1 of 6 elements differ, by at most 0.5 (relative 0.25), the first "
        "at 4: 1.5 and 2");
  saved.weight[4] -= 0.5F;
  CHECK(diff_checkpoints(a, save("c"))
            .find("tensor 'optimizer/counts': 1 of 3 elements differ, "
                  "by at most 49") == 0);
  saved.counts[0] = 1;
  saved.weight[5] = std::nanf("");
  CHECK(diff_checkpoints(a, save("d")).find("by at most inf") != std::string::npos);
  saved.weight[5] = SmallState(1).weight[5];
  saved.scale = 0.2;
  CHECK(diff_checkpoints(a, save("e")) == "scalar 'scale' is 0.1 and 0.2");
  saved.scale = 0.1;
  CHECK(diff_checkpoints(a, save_checkpoint(dir / "f", meta_of(2), saved.state())) ==
        "step is 1 and 2");
  float extra = 0;
  NamedState more = saved.state();
  more.add("a/extra", TensorView(std::span<float>(&extra, 1)));
  const std::string g = save_checkpoint(dir / "g", meta_of(1), more);
  CHECK(diff_checkpoints(a, g) == "tensor 'a/extra' is only in '" + g + "'");
  CHECK(diff_checkpoints(g, a) == "tensor 'a/extra' is only in '" + g + "'");
}
