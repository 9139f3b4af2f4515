// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/tensor.h"
#include "io/loader.h"
#include "io/transform.h"

namespace annulus {

// A batch with its memory.
struct BatchBuffer {
  LoadedBatch batch;
  std::vector<Tensor> inputs;  // for the largest batch
  Tensor targets;
};

// Makes batches: samples drawn, read and transformed. Stateless; each thread brings the memory.
class BatchMaker {
 public:
  BatchMaker(const Dataset& dataset, const Sampler& sampler, const LoaderOptions& options);

  BatchBuffer make_buffer() const;
  // Working memory of one thread.
  std::vector<float> make_scratch() const;
  void fill(BatchBuffer& buffer, const Slice& slice, std::span<float> scratch) const;

 private:
  const Dataset& dataset_;
  const Sampler& sampler_;
  std::int64_t max_count_;
  std::vector<Transform> transforms_;  // one an input
};

}  // namespace annulus
