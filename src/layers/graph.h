// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/shape.h"
#include "layers/layer.h"
#include "layers/model_spec.h"

namespace annulus {

// The network as a static graph, for any batch size and device: nodes in the order of execution,
// values between them, and the flat buffers that parameters and statistics live in. Built once;
// immutable.
class Graph {
 public:
  // A tensor between nodes. Values 0 .. inputs-1 are the model's inputs.
  struct ValueInfo {
    std::string name;
    Shape shape;               // of a sample
    int producer = -1;         // node; -1: an input
    std::vector<int> readers;  // nodes, in order; a node that reads it twice is there twice
  };
  struct Node {
    std::string name;
    std::string kind;
    Layer* layer = nullptr;
    std::vector<int> inputs;      // values
    int output = -1;              // value
    std::vector<int> parameters;  // indices into parameters(), in the layer's order
    std::vector<int> statistics;  // indices into statistics(), in the layer's order
    int uses = 1;                 // nodes that share these parameters
  };
  // A parameter; `offset` is its first element in the flat weights and in the flat gradients alike,
  // a multiple of 64 bytes, since vector stores are aligned. What lies between parameters is zero.
  struct Parameter {
    std::string name;  // "conv1/weight"
    ParameterSpec spec;
    std::int64_t offset = 0;
    std::int64_t elements = 0;
    std::int64_t room = 0;  // elements and the zeros up to the next parameter
  };
  struct Statistic {
    std::string name;  // "batch_norm1/running_mean"
    StatisticSpec spec;
    std::int64_t offset = 0;  // in the flat statistics
    std::int64_t elements = 0;
  };

  // Takes the layers out of the spec. `spec.classes` 0: as the last layer has it. Adds to
  // `problems`, with places: unknown or doubly used names, wrong numbers of inputs, shapes that do
  // not fit (with the shapes so far), parameters shared between layers that differ, a last layer
  // that does not give what the loss needs (classes). Where it adds any, the graph must not be
  // used.
  Graph(ModelSpec spec, Problems& problems);

  const std::vector<ValueInfo>& values() const { return values_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  // In the order in which backward finishes their gradients: last layer first.
  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::vector<Statistic>& statistics() const { return statistics_; }
  std::int64_t parameter_elements() const { return parameter_elements_; }
  // Length of the flat weights and gradients: the parameters and what lies between them.
  std::int64_t flat_elements() const { return flat_elements_; }
  std::int64_t statistic_elements() const { return statistic_elements_; }
  const std::vector<ModelInput>& inputs() const { return spec_.inputs; }
  const LossSpec& loss() const { return spec_.loss; }
  std::int64_t classes() const { return spec_.classes; }
  int output() const { return output_; }  // value that the loss and predictions take
  std::int64_t macs_per_sample() const;

  // Sets all weights and running statistics to their start values.
  void initialize(std::span<float> weights, std::span<float> statistics, std::uint64_t seed) const;

 private:
  void link();
  void place_parameters(const std::map<std::string, std::string>& owners);
  void add_parameters(Node& node, const std::string& owner, const Layer& layer);

  ModelSpec spec_;
  std::vector<ValueInfo> values_;
  std::vector<Node> nodes_;
  std::vector<Parameter> parameters_;
  std::vector<Statistic> statistics_;
  std::int64_t parameter_elements_ = 0;
  std::int64_t flat_elements_ = 0;
  std::int64_t statistic_elements_ = 0;
  int output_ = -1;
};

}  // namespace annulus
