// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "layers/ops.h"

namespace annulus {

// One node as its memory sees it: what it reads and writes, and what its operation wants.
struct PlanNode {
  std::vector<int> inputs;  // values
  int output = -1;          // value
  OpMemory memory;
  bool backward = false;             // has a backward pass
  std::vector<bool> input_gradient;  // wanted for that input
  // Space for results that are then added to those of another node: batch sums (forward) and
  // gradients (backward) of shared parameters.
  std::size_t forward_scratch = 0;
  std::size_t backward_scratch = 0;
};

// A step as its memory sees it. Time runs through the nodes, then the loss, then the nodes in
// reverse.
struct PlanRequest {
  std::vector<std::size_t> value_bytes;
  int inputs = 0;  // the first values: memory of the caller
  std::vector<PlanNode> nodes;
  int loss_input = -1;  // value that the loss reads
  int kept = -1;        // value that is left when the step is over: the prediction
  std::size_t loss_workspace = 0;
  bool train = false;
  // Each value has memory of its own, and nothing is written in place.
  bool separate = false;
};

// Where something lies: in the arena, in memory of the caller (`input` >= 0), or nowhere.
struct Place {
  static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);
  std::size_t offset = nowhere;  // in the arena
  int input = -1;
};

// One gradient that a node's backward pass gives to an input.
struct GradientPlace {
  Place written;            // where the operation writes it
  bool accumulate = false;  // then it is added to the value's gradient
};

struct NodePlaces {
  Place saved;
  Place forward_workspace;
  Place forward_scratch;
  Place backward_workspace;
  Place backward_scratch;
  std::vector<GradientPlace> input_gradients;
};

// A piece of the arena whose life ends with a time of the step.
struct Death {
  int time = 0;
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

struct MemoryPlan {
  std::size_t bytes = 0;  // size of the arena
  std::vector<Place> values;
  std::vector<Place> gradients;  // of values; nowhere: not needed
  std::vector<NodePlaces> nodes;
  Place loss_workspace;
  std::vector<Death> deaths;  // in order of time; what is kept does not die
};

// Times of a step of n nodes: forward of node i, the loss, backward of node i.
inline int forward_time(int node) {
  return node;
}
inline int loss_time(int nodes) {
  return nodes;
}
inline int backward_time(int node, int nodes) {
  return 2 * nodes - node;
}

// Gives everything of a step its place. A pure function.
MemoryPlan plan_memory(const PlanRequest& request);

}  // namespace annulus
