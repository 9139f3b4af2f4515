// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/tensor.h"
#include "layers/graph.h"
#include "layers/ops.h"

namespace annulus {

// Planned: values share one arena by lifetime. Separate (for debugging): each value has memory of
// its own, filled with signalling NaNs when its life ends. Both give the same bits.
enum class MemoryMode { planned, separate };

// The flat buffers of a rank that a pass reads and writes, on the device.
struct FlatBuffers {
  const float* weights = nullptr;     // Graph::flat_elements()
  const float* statistics = nullptr;  // Graph::statistic_elements(), running (evaluate)
  float* gradients = nullptr;         // Graph::flat_elements() (train)
  float* batch_sums = nullptr;        // Graph::statistic_elements() (train)
};

// A graph made ready for one batch size and mode on one device: its operations, and the place of
// every value, gradient and scratch space in one arena. Executors of one rank run one after the
// other and share the arena. Passes allocate nothing.
class Executor {
 public:
  // Called when the gradients of parameters 0 .. `parameter` of the graph's order are final.
  using GradientReady = std::function<void(int parameter)>;

  // `graph` and `backend` must outlive it. Errors of creation name the layer.
  Executor(const Graph& graph, Backend& backend, std::int64_t batch, Mode mode, std::uint64_t seed,
           MemoryMode memory = MemoryMode::planned);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  std::int64_t batch() const;
  // Size of the arena it needs; call bind() with at least that much device memory before the first
  // pass.
  std::size_t arena_bytes() const;
  void bind(std::byte* arena);

  // One forward pass; `inputs` are plain device tensors (batch, ...) in the order of
  // Graph::inputs().
  void forward(std::span<const float* const> inputs, const FlatBuffers& buffers,
               const StepContext& step);
  // Loss of the last forward pass; in Mode::train also the gradient of `scale` times the loss sum,
  // which backward starts from. `targets`: device memory, see LossOp.
  LossSums loss(const void* targets, double scale);
  // Backward of the last forward and loss. Overwrites all gradients.
  void backward(std::span<const float* const> inputs, const FlatBuffers& buffers,
                const StepContext& step, const GradientReady& ready);
  // The last forward's prediction, plain, (batch, ...); valid until the next pass of any executor.
  const float* prediction() const;

  // The operation of each node of the graph, for tables; nothing for a node that the one after it
  // does.
  struct NodeReport {
    std::string implementation;
    std::size_t output_bytes = 0;
  };
  std::vector<NodeReport> report() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace annulus
