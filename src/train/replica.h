// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/buffer.h"
#include "core/device.h"
#include "core/state.h"
#include "layers/executor.h"
#include "layers/graph.h"

namespace annulus {

// One rank's copy of the network: weights and running statistics in flat buffers, and an executor
// for each batch size that occurs, all in one arena.
class Replica {
 public:
  // `graph` and `device` must outlive it. Nothing big is touched before bind().
  Replica(const Graph& graph, DeviceContext& device, std::uint64_t seed, MemoryMode memory,
          BackendOptions options);
  ~Replica();

  // Lets the operations of a training pass over `batch` samples choose how parameters are kept in
  // the flat buffers. Before anything is prepared, and with the same batch on every rank, since
  // ranks exchange these buffers. Without it parameters are plain.
  void choose_layouts(std::int64_t batch);
  // Makes the executors for these batch sizes. After it, bind() gives them memory.
  void prepare(Mode mode, std::span<const std::int64_t> batches);
  // Gives the weights their start values from the seed, allocates the arena and touches it, in
  // parallel, so that the first step does not pay for it. Once.
  void bind();
  // The prepared executor. Error (bug) where there is none.
  Executor& executor(Mode mode, std::int64_t batch);

  const Graph& graph() const { return graph_; }
  // The parameters one after another, each in the order that layout_of() says.
  std::span<float> weights() { return weights_; }
  // Null: plain. Valid as long as this.
  const ParameterLayout* layout_of(int parameter) const {
    return backend_->parameter_layout(parameter);
  }
  std::span<float> statistics() { return statistics_; }
  // Pointers for a pass; gradients and batch sums are the caller's.
  FlatBuffers buffers(float* gradients, float* batch_sums) const;

  std::int64_t version() const { return version_; }
  // To be called whenever the weights were changed.
  void weights_changed() { ++version_; }

  // Parameters and running statistics under their names.
  void add_to(NamedState& state);
  std::string weights_hash();
  // Memory of weights, statistics, arena and packed weights, whether or not bound yet.
  std::size_t bytes() const;
  // The part of it that prepare() has only planned: it becomes resident with bind() and the first
  // step.
  std::size_t unbound_bytes() const;

 private:
  std::span<float> own_weights(int parameter);

  const Graph& graph_;
  DeviceContext& device_;
  std::uint64_t seed_;
  MemoryMode memory_;
  std::unique_ptr<Backend> backend_;
  Tensor weight_memory_;
  Tensor statistic_memory_;
  std::span<float> weights_;
  std::span<float> statistics_;
  std::map<std::pair<Mode, std::int64_t>, std::unique_ptr<Executor>> executors_;
  Buffer arena_;
  std::size_t arena_bytes_ = 0;
  std::int64_t version_ = 1;
};

}  // namespace annulus
