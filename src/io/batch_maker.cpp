// SPDX-License-Identifier: Apache-2.0
#include "io/batch_maker.h"

#include <algorithm>

#include "core/error.h"

namespace annulus {

BatchMaker::BatchMaker(const Dataset& dataset, const Sampler& sampler, const LoaderOptions& options)
    : dataset_(dataset), sampler_(sampler), max_count_(options.max_count) {
  require(max_count_ >= 1, ErrorKind::bug, "a loader of batches of {}", max_count_);
  for (const Shape& shape : dataset.input_shapes()) {
    transforms_.emplace_back(shape, options.scale, options.mean, options.std, options.augment,
                             options.seed);
  }
}

BatchBuffer BatchMaker::make_buffer() const {
  BatchBuffer buffer;
  for (const Shape& shape : dataset_.input_shapes()) {
    buffer.inputs.emplace_back(shape.with_batch(max_count_), DType::f32);
  }
  switch (dataset_.target_kind()) {
    case TargetKind::none:
      break;
    case TargetKind::class_ids:
      buffer.targets = Tensor(Shape{max_count_}, DType::i32);
      break;
    case TargetKind::values:
      buffer.targets = Tensor(dataset_.target_shape().with_batch(max_count_), DType::f32);
      break;
  }
  buffer.batch.inputs.resize(buffer.inputs.size());
  buffer.batch.samples.reserve(static_cast<std::size_t>(max_count_));
  return buffer;
}

std::vector<float> BatchMaker::make_scratch() const {
  std::size_t size = 0;
  for (const Transform& transform : transforms_) size = std::max(size, transform.scratch_size());
  return std::vector<float>(size);
}

void BatchMaker::fill(BatchBuffer& buffer, const Slice& slice, std::span<float> scratch) const {
  require(slice.count >= 1 && slice.count <= max_count_, ErrorKind::bug,
          "a batch of {} samples where the largest is {}", slice.count, max_count_);
  LoadedBatch& batch = buffer.batch;
  batch.slice = slice;
  batch.samples.resize(static_cast<std::size_t>(slice.count));
  for (std::size_t i = 0; i < batch.samples.size(); ++i) {
    batch.samples[i] = sampler_.sample(slice.epoch, slice.first + static_cast<std::int64_t>(i));
  }
  const auto part = [&](const Tensor& whole) {
    TensorView view = whole.view();
    if (view.shape.rank() > 0) view.shape[0] = slice.count;
    return view;
  };
  for (std::size_t i = 0; i < batch.inputs.size(); ++i) batch.inputs[i] = part(buffer.inputs[i]);
  batch.targets = part(buffer.targets);
  dataset_.read(batch.samples, batch.inputs, batch.targets);

  for (std::size_t i = 0; i < batch.inputs.size(); ++i) {
    const std::span<float> values = batch.inputs[i].as<float>();
    const std::size_t size = values.size() / batch.samples.size();
    for (std::size_t s = 0; s < batch.samples.size(); ++s) {
      transforms_[i].apply(values.subspan(s * size, size), batch.samples[s], slice.epoch, scratch);
    }
  }
}

}  // namespace annulus
