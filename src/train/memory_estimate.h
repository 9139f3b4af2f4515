// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/device.h"
#include "layers/graph.h"
#include "train/batch_plan.h"
#include "train/run_spec.h"

namespace annulus {

// Memory that a rank of a training run will hold, in bytes, by what it is for.
struct MemoryEstimate {
  std::int64_t process = 0;    // program, libraries, primitives, weights: resident once all is made
  std::int64_t values = 0;     // activations, their gradients and scratch space: the arena
  std::int64_t moments = 0;    // of the optimizer
  std::int64_t gradients = 0;  // the reducer's buffers, and what is read of the neighbours' buffers
  std::int64_t batches = 0;    // the loaders' buffers
  std::int64_t total() const { return process + values + moments + gradients + batches; }
};

// Builds the executors of rank 0 of `ranks` (on one node) without running them, and counts. The
// spec has its shards settled.
MemoryEstimate estimate_memory(const RunSpec& spec, const Graph& graph, DeviceContext& device,
                               const BatchPlan& plan, std::int64_t ranks);

}  // namespace annulus
