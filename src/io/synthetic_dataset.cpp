// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/rng.h"
#include "io/dataset.h"

namespace annulus {
namespace {

// A few distinct samples are made at the start and sample i is a copy of the (i mod pool)-th, so
// that a benchmark measures the network and not the making of random numbers.
constexpr std::int64_t most_distinct = 64;
constexpr std::int64_t most_bytes = std::int64_t{8} << 20;

class SyntheticDataset final : public Dataset {
 public:
  SyntheticDataset(const DataDemand& demand, std::int64_t samples, std::uint64_t seed);

  std::int64_t size() const override { return samples_; }
  const std::vector<Shape>& input_shapes() const override { return demand_.input_shapes; }
  TargetKind target_kind() const override { return demand_.target_kind; }
  const Shape& target_shape() const override { return demand_.target_shape; }
  void read(std::span<const std::int64_t> ids, std::span<const TensorView> inputs,
            const TensorView& targets) const override;
  std::string fingerprint() const override;

 private:
  Tensor normal_pool(const RandomStream& stream, const Shape& shape) const;
  Tensor class_pool() const;

  DataDemand demand_;
  std::int64_t samples_;
  std::uint64_t seed_;
  std::int64_t distinct_ = 1;
  std::vector<Tensor> inputs_;
  Tensor targets_;
};

SyntheticDataset::SyntheticDataset(const DataDemand& demand, std::int64_t samples,
                                   std::uint64_t seed)
    : demand_(demand), samples_(samples), seed_(seed) {
  require(samples >= 1, ErrorKind::usage, "a synthetic data set needs data.samples >= 1, not {}",
          samples);
  require_equal(demand.input_names.size(), demand.input_shapes.size(), "shapes of inputs");
  std::int64_t sample_bytes = 1;
  for (const Shape& shape : demand.input_shapes) {
    sample_bytes += shape.elements() * static_cast<std::int64_t>(sizeof(float));
  }
  distinct_ =
      std::clamp(most_bytes / sample_bytes, std::int64_t{1}, std::min(most_distinct, samples));
  for (std::size_t i = 0; i < demand.input_shapes.size(); ++i) {
    const RandomStream stream(seed, RandomUse::synthetic, demand.input_names[i]);
    inputs_.push_back(normal_pool(stream, demand.input_shapes[i]));
  }
  if (demand.target_kind == TargetKind::class_ids) targets_ = class_pool();
  if (demand.target_kind == TargetKind::values) {
    targets_ =
        normal_pool(RandomStream(seed, RandomUse::synthetic, "targets/"), demand.target_shape);
  }
}

Tensor SyntheticDataset::normal_pool(const RandomStream& stream, const Shape& shape) const {
  Tensor pool(shape.with_batch(distinct_), DType::f32);
  const std::span<float> values = pool.as<float>();
  const auto count = static_cast<std::size_t>(shape.elements());
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = stream.normal(i % count, i / count, 0);
  }
  return pool;
}

Tensor SyntheticDataset::class_pool() const {
  require(demand_.classes >= 1, ErrorKind::usage, "random labels need the number of classes");
  Tensor pool(Shape{distinct_}, DType::i32);
  const RandomStream stream(seed_, RandomUse::synthetic, "labels/");
  for (std::int64_t i = 0; i < distinct_; ++i) {
    const std::uint64_t bits = stream.bits(0, static_cast<std::uint64_t>(i), 0);
    pool.as<std::int32_t>()[static_cast<std::size_t>(i)] =
        static_cast<std::int32_t>(bits * static_cast<std::uint64_t>(demand_.classes) >> 32);
  }
  return pool;
}

// Copies entry ids[i] mod (entries) of a pool to place i of a batch.
void copy_entries(std::span<const std::int64_t> ids, const Tensor& pool, const TensorView& to) {
  const std::int64_t distinct = pool.shape()[0];
  const std::size_t bytes = pool.view().bytes() / static_cast<std::size_t>(distinct);
  require_equal(ids.size() * bytes, to.bytes(), "bytes of a batch");
  const auto* from = static_cast<const std::byte*>(pool.view().data);
  auto* at = static_cast<std::byte*>(to.data);
  for (std::int64_t id : ids) {
    std::memcpy(at, from + static_cast<std::size_t>(id % distinct) * bytes, bytes);
    at += bytes;
  }
}

void SyntheticDataset::read(std::span<const std::int64_t> ids, std::span<const TensorView> inputs,
                            const TensorView& targets) const {
  require_equal(inputs_.size(), inputs.size(), "inputs of a batch");
  for (std::size_t i = 0; i < inputs_.size(); ++i) copy_entries(ids, inputs_[i], inputs[i]);
  if (demand_.target_kind != TargetKind::none) copy_entries(ids, targets_, targets);
}

std::string SyntheticDataset::fingerprint() const {
  std::string text = fmt::format("synthetic, seed {}, {} samples", seed_, samples_);
  for (const Shape& shape : demand_.input_shapes) text += ", " + to_string(shape);
  return text;
}

}  // namespace

std::unique_ptr<Dataset> make_synthetic_dataset(const DataDemand& demand, std::int64_t samples,
                                                std::uint64_t seed) {
  return std::make_unique<SyntheticDataset>(demand, samples, seed);
}

}  // namespace annulus
