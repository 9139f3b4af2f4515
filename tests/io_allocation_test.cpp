// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <optional>
#include <vector>

#include <doctest/doctest.h>

#include "io/loader.h"
#include "support/allocations.h"
#include "support/hdf5_writer.h"
#include "support/io_data.h"
#include "support/temp_dir.h"

using namespace annulus;
using namespace annulus::test;

namespace {

constexpr std::int64_t samples = 64;
constexpr std::int64_t warm_up = 4;

// Counts what the reading thread allocates from the start of one read to the start of the next.
class CountedDataset : public Dataset {
 public:
  explicit CountedDataset(const Dataset& inner) : inner_(inner) {}
  std::int64_t size() const override { return inner_.size(); }
  const std::vector<Shape>& input_shapes() const override { return inner_.input_shapes(); }
  TargetKind target_kind() const override { return inner_.target_kind(); }
  const Shape& target_shape() const override { return inner_.target_shape(); }
  std::string fingerprint() const override { return inner_.fingerprint(); }
  void read(std::span<const std::int64_t> ids, std::span<const TensorView> inputs,
            const TensorView& targets) const override {
    const std::int64_t now = allocations();
    if (reads_++ >= warm_up) counted_ += now - last_;
    last_ = now;
    inner_.read(ids, inputs, targets);
  }
  std::int64_t counted() const { return counted_; }
  std::int64_t reads() const { return reads_; }

 private:
  const Dataset& inner_;
  mutable std::int64_t reads_ = 0;  // of one thread at a time
  mutable std::int64_t last_ = 0;
  mutable std::int64_t counted_ = 0;
};

void write_file(const std::string& path) {
  TestFile file(path);
  const std::vector<float> x(samples * 3 * 8 * 8, 1);
  file.add<float>("plain", {samples, 3, 8, 8}, H5T_IEEE_F32LE, x);
  file.add<float>("bytes", {samples, 3, 8, 8}, H5T_STD_U8LE, x);
  file.add<float>("deflate_nhwc", {samples, 8, 8, 3}, H5T_IEEE_F64BE, x, {{4, 8, 8, 3}, true});
  file.add<std::int64_t>("labels", {samples}, H5T_STD_I64LE, std::vector<std::int64_t>(samples));
}

std::optional<Slice> batch_of_ten(std::int64_t index) {
  if (index == 70) return std::nullopt;
  const std::int64_t first = index % 7 * 10;
  return Slice{index, index / 7, first, std::min<std::int64_t>(10, samples - first)};
}

}  // namespace

TEST_CASE("after a few batches the loader allocates nothing, on its threads or on the caller's") {
  const TempDir dir;
  write_file(dir / "a.h5");
  for (const char* path : {"plain", "bytes", "deflate_nhwc"}) {
    for (std::int64_t workers : {0, 1}) {
      CAPTURE(path);
      CAPTURE(workers);
      DataSpec spec = spec_of(dir / "a.h5", path, "labels");
      if (std::string(path) == "deflate_nhwc") spec.layout = "NHWC";
      const auto dataset = open_dataset(spec, demand_of({3, 8, 8}, 10));
      const CountedDataset counted(*dataset);
      const Sampler sampler(samples, true, 1);
      LoaderOptions options;
      options.max_count = 10;
      options.workers = workers;
      options.augment = {2, true};
      Loader loader(counted, sampler, batch_of_ten, options);
      for (int i = 0; i < warm_up; ++i) REQUIRE(loader.next() != nullptr);
      const std::int64_t before = allocations();
      while (loader.next() != nullptr) {
      }
      CHECK(allocations() - before == 0);
      CHECK(counted.reads() == 70);
      CHECK(counted.counted() == 0);
    }
  }
}

TEST_CASE("a prepared data set allocates nothing, from its first read on") {
  const TempDir dir;
  write_file(dir / "a.h5");
  DataSpec spec = spec_of(dir / "a.h5", "deflate_nhwc", "labels");
  spec.layout = "NHWC";
  const auto dataset = open_dataset(spec, demand_of({3, 8, 8}, 10));
  dataset->prepare(1, 10);
  Tensor inputs(Shape{10, 3, 8, 8}, DType::f32);
  Tensor labels(Shape{10}, DType::i32);
  const std::vector<std::int64_t> ids = {63, 1, 2, 3, 17, 16, 40, 0, 5, 5};
  const TensorView input = inputs.view();
  const std::int64_t before = allocations();
  dataset->read(ids, {&input, 1}, labels.view());
  CHECK(allocations() - before == 0);
  CHECK(inputs.as<float>()[5] == 1);
}
