// SPDX-License-Identifier: Apache-2.0
#include "train/replica.h"

#include <algorithm>

#include "core/error.h"
#include "train/kept_tensor.h"

namespace annulus {

Replica::Replica(const Graph& graph, DeviceContext& device, std::uint64_t seed, MemoryMode memory,
                 BackendOptions options)
    : graph_(graph),
      device_(device),
      seed_(seed),
      memory_(memory),
      backend_(make_backend(device, options)),
      weight_memory_(Shape{graph.flat_elements()}, DType::f32),
      statistic_memory_(Shape{graph.statistic_elements()}, DType::f32),
      weights_(weight_memory_.as<float>()),
      statistics_(statistic_memory_.as<float>()) {}

Replica::~Replica() = default;

void Replica::choose_layouts(std::int64_t batch) {
  backend_->choose_parameter_layouts(true);
  const Executor chooser(graph_, *backend_, batch, Mode::train, seed_, memory_);
  backend_->choose_parameter_layouts(false);
}

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
  std::vector<float> plain;
  for (int i = 0; i < static_cast<int>(graph_.parameters().size()); ++i) {
    const ParameterLayout* layout = layout_of(i);
    if (layout == nullptr) continue;
    const std::span<float> own = own_weights(i);
    plain.assign(own.begin(), own.end());
    layout->pack(plain.data(), own.data());
  }
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

std::span<float> Replica::own_weights(int parameter) {
  const Graph::Parameter& p = graph_.parameters()[static_cast<std::size_t>(parameter)];
  return weights_.subspan(static_cast<std::size_t>(p.offset), static_cast<std::size_t>(p.elements));
}

void Replica::add_to(NamedState& state) {
  for (int i = 0; i < static_cast<int>(graph_.parameters().size()); ++i) {
    const Graph::Parameter& parameter = graph_.parameters()[static_cast<std::size_t>(i)];
    state.add(kept_tensor(parameter.name, parameter.spec.shape, own_weights(i).data(), layout_of(i),
                          device_));
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
