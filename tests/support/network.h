// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/buffer.h"
#include "layers/executor.h"
#include "layers/graph.h"
#include "support/aligned.h"

namespace annulus {

// [model] and [loss] of a config given as TOML text, with its blocks expanded.
ModelSpec read_model(const std::string& toml, Problems& problems);
// The graph of such a text; throws where it has problems.
Graph make_graph(const std::string& toml);
// All problems of such a text, of reading and of the graph, one a line; empty where there are none.
std::string problems_of(const std::string& toml);

using Floats = std::vector<float, testing::Aligned<float>>;

// A network on a device of host memory with random inputs and targets.
class Network {
 public:
  // `graph` and `backend` must outlive it.
  Network(const Graph& graph, Backend& backend, std::int64_t batch, Mode mode = Mode::train,
          MemoryMode memory = MemoryMode::planned);

  LossSums forward(double scale = 1);  // and the loss
  void backward();
  LossSums step() {
    const LossSums sums = forward();
    backward();
    return sums;
  }
  Floats prediction() const;
  FlatBuffers buffers();

  const Graph& graph;
  Executor executor;
  Buffer arena;
  Floats weights;
  Floats statistics;
  Floats gradients;
  Floats batch_sums;
  std::vector<Floats> inputs;
  std::vector<std::int32_t> labels;
  Floats targets;  // where the loss takes values
  std::vector<std::int64_t> samples;
  StepContext context;
  std::vector<int> ready;  // what backward called GradientReady with

 private:
  std::vector<const float*> input_pointers_;
};

// `count` numbers in [-1, 1) that depend on the name alone.
Floats random_numbers(std::size_t count, const std::string& name);

// The largest |a - b| / max(|b|'s largest, floor).
double relative_difference(const Floats& a, const Floats& b);

}  // namespace annulus
