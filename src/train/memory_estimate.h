// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "train/batch_plan.h"
#include "train/replica.h"
#include "train/run_spec.h"

namespace annulus {

// Memory that a rank of a training run will hold, in bytes, by what it is for.
struct MemoryEstimate {
  std::int64_t process = 0;    // program, libraries, primitives: what is resident before the rest
  std::int64_t weights = 0;    // parameters and running statistics
  std::int64_t values = 0;     // activations, their gradients and scratch space: the arena
  std::int64_t moments = 0;    // of the optimizer
  std::int64_t gradients = 0;  // the reducer's buffers, and what is read of the neighbours' buffers
  std::int64_t batches = 0;    // the loaders' buffers
  std::int64_t total() const { return process + weights + values + moments + gradients + batches; }
  // What is still to be allocated.
  std::int64_t to_come() const { return total() - process; }
};

// Counts for a rank with the shards `own`, one of `ranks` on one node. `replica` has its executors
// prepared and is not bound yet: nothing big has been allocated.
MemoryEstimate estimate_memory(const RunSpec& spec, const Replica& replica, const BatchPlan& plan,
                               Span64 own, std::int64_t ranks);

// Error (resource) with both numbers where `ranks` such ranks on one node do not fit in `available`
// bytes; nothing known is no limit.
void require_memory(const MemoryEstimate& estimate, std::int64_t ranks,
                    std::optional<std::int64_t> available);

}  // namespace annulus
