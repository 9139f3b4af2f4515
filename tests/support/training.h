// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "io/dataset.h"
#include "train/session.h"
#include "train/trainer.h"

namespace annulus::testing {

// A data set in memory: inputs of one shape, and class ids or values.
class MemoryDataset final : public Dataset {
 public:
  // `inputs` holds samples one after another. Class ids:
  MemoryDataset(Shape shape, std::vector<float> inputs, std::vector<std::int32_t> labels);
  // Values, as many a sample as there are in all:
  MemoryDataset(Shape shape, std::vector<float> inputs, std::vector<float> values);

  std::int64_t size() const override { return size_; }
  const std::vector<Shape>& input_shapes() const override { return shapes_; }
  TargetKind target_kind() const override { return kind_; }
  const Shape& target_shape() const override { return target_shape_; }
  void read(std::span<const std::int64_t> ids, std::span<const TensorView> inputs,
            const TensorView& targets) const override;
  std::string fingerprint() const override { return "memory"; }

 private:
  std::vector<Shape> shapes_;
  std::vector<float> inputs_;
  std::vector<std::int32_t> labels_;
  std::vector<float> values_;
  TargetKind kind_;
  Shape target_shape_;
  std::int64_t size_;
};

// What a run in threads leaves on each rank.
struct RankOutcome {
  TrainResult result;
  std::vector<double> losses;  // mean loss of each update
  std::vector<double> norms;   // gradient norm of each update
  std::vector<float> weights;
  std::vector<float> statistics;
};

struct TrainingJob {
  std::string config;  // TOML; [data] may be left out
  std::function<DataSets()> data;
  int ranks = 1;
  int nodes = 1;
};

// Trains with ranks as threads of this process, each step by hand, then evaluates if there is test
// data.
std::vector<RankOutcome> train(const TrainingJob& job);

}  // namespace annulus::testing
