// SPDX-License-Identifier: Apache-2.0
#include "train/replica.h"

#include <algorithm>

#include "core/error.h"

namespace annulus {

Replica::Replica(const Graph& graph, DeviceContext& device, std::uint64_t seed, MemoryMode memory)
    : graph_(graph),
      device_(device),
      seed_(seed),
      memory_(memory),
      backend_(make_backend(device)),
      weight_memory_(Shape{graph.parameter_elements()}, DType::f32),
      statistic_memory_(Shape{graph.statistic_elements()}, DType::f32),
      weights_(weight_memory_.as<float>()),
      statistics_(statistic_memory_.as<float>()) {}

Replica::~Replica() = default;

void Replica::prepare(Mode mode, std::span<const std::int64_t> batches) {
  for (std::int64_t batch : batches) {
    auto& executor = executors_[{mode, batch}];
    if (executor) continue;
    executor = std::make_unique<Executor>(graph_, *backend_, batch, mode, seed_, memory_);
    arena_bytes_ = std::max(arena_bytes_, executor->arena_bytes());
  }
}

void Replica::bind() {
  graph_.initialize(weights_, statistics_, seed_);
  arena_ = device_.allocate(arena_bytes_);
  if (arena_bytes_ > 0) device_.zero(arena_.data(), arena_.bytes());
  for (auto& entry : executors_) entry.second->bind(arena_.as<std::byte>());
}

Executor& Replica::executor(Mode mode, std::int64_t batch) {
  const auto found = executors_.find({mode, batch});
  require(found != executors_.end(), ErrorKind::bug, "no executor for a batch of {}", batch);
  return *found->second;
}

FlatBuffers Replica::buffers(float* gradients, float* batch_sums) const {
  return {weights_.data(), statistics_.data(), gradients, batch_sums};
}

void Replica::add_to(NamedState& state) {
  for (const Graph::Parameter& parameter : graph_.parameters()) {
    state.add(parameter.name,
              TensorView(weights_.data() + parameter.offset, parameter.spec.shape, DType::f32));
  }
  for (const Graph::Statistic& statistic : graph_.statistics()) {
    state.add(statistic.name,
              TensorView(statistics_.data() + statistic.offset, statistic.spec.shape, DType::f32));
  }
}

std::string Replica::weights_hash() {
  NamedState state;
  add_to(state);
  return hash_of(state.tensors());
}

std::size_t Replica::bytes() const {
  return weights_.size_bytes() + statistics_.size_bytes() + unbound_bytes();
}

std::size_t Replica::unbound_bytes() const {
  return arena_bytes_ + backend_->bytes();
}

}  // namespace annulus
