// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "layers/executor.h"
#include "layers/graph.h"
#include "layers/memory_plan.h"
#include "layers/ops.h"

namespace annulus {

// One operation of a step, with the arguments of its calls laid out, so that passes fill them in
// without allocating.
struct Step {
  const Graph::Node* node = nullptr;  // null: the last one, which makes the prediction plain
  const Graph::Node* conv = nullptr;  // a convolution before the node that is done along with it
  std::unique_ptr<Op> op;
  OpMemory memory;
  bool backward = false;  // a gradient flows through it
  // Among the steps that share its parameters, in the order of forward.
  bool first_use = true;
  bool last_use = true;
  std::vector<int> inputs;  // values
  int output = -1;
  std::vector<int> parameter_ids;  // in the graph, in the order of the operation

  // Types for adding up what the uses of shared parameters give.
  std::vector<ValueType> statistic_types;
  std::vector<ValueType> parameter_types;

  std::vector<const float*> input_pointers;
  std::vector<const float*> backward_inputs;
  std::vector<const float*> parameters;
  std::vector<const float*> running;
  std::vector<float*> batch_sums;
  std::vector<float*> parameter_gradients;
  std::vector<float*> input_gradients;
};

// A graph with its operations made for one batch size and mode, and everything in its place.
struct PreparedGraph {
  std::vector<Step> steps;        // the graph's nodes, then the one for the prediction; while
                                  // evaluating, a node may be a part of the one after it
  std::vector<ValueType> values;  // the graph's values, then the prediction; no layout: not made
  std::unique_ptr<LossOp> loss;
  MemoryPlan plan;
};

// Errors of operations name the layer.
PreparedGraph prepare(const Graph& graph, Backend& backend, std::int64_t batch, Mode mode,
                      std::uint64_t seed, MemoryMode memory);

}  // namespace annulus
