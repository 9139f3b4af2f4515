// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "io/dataset.h"

namespace annulus::test {

inline DataSpec spec_of(const std::string& file, const std::string& inputs,
                        const std::string& labels) {
  DataSpec spec;
  spec.file = file;
  spec.inputs = {{"", inputs}};
  spec.labels = labels;
  return spec;
}

// A model with one input and `classes` classes.
inline DataDemand demand_of(const Shape& input, std::int64_t classes) {
  DataDemand demand;
  demand.input_names = {"input"};
  demand.input_shapes = {input};
  demand.classes = classes;
  return demand;
}

// The samples of a data set with one input.
struct ReadBatch {
  std::vector<float> inputs;
  std::vector<std::int32_t> class_ids;
  std::vector<float> values;
};
inline ReadBatch read(const Dataset& dataset, std::span<const std::int64_t> ids) {
  const auto count = static_cast<std::int64_t>(ids.size());
  const Tensor inputs(dataset.input_shapes()[0].with_batch(count), DType::f32);
  Tensor targets;
  if (dataset.target_kind() == TargetKind::class_ids) targets = Tensor(Shape{count}, DType::i32);
  if (dataset.target_kind() == TargetKind::values) {
    targets = Tensor(dataset.target_shape().with_batch(count), DType::f32);
  }
  dataset.read(ids, std::vector<TensorView>{inputs.view()}, targets.view());
  ReadBatch batch;
  const auto floats = inputs.as<float>();
  batch.inputs.assign(floats.begin(), floats.end());
  if (dataset.target_kind() == TargetKind::class_ids) {
    const auto labels = targets.as<std::int32_t>();
    batch.class_ids.assign(labels.begin(), labels.end());
  }
  if (dataset.target_kind() == TargetKind::values) {
    const auto values = targets.as<float>();
    batch.values.assign(values.begin(), values.end());
  }
  return batch;
}

// The text of the error that opening gives, which must be one line; "" where there is none.
inline std::string error_of(const DataSpec& spec, const DataDemand& demand) {
  try {
    open_dataset(spec, demand);
  } catch (const Error& error) {
    return std::string(error.what()).find('\n') == std::string::npos ? error.what()
                                                                     : "more than one line";
  }
  return "";
}

}  // namespace annulus::test
