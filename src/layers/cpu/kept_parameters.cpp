// SPDX-License-Identifier: Apache-2.0
#include "layers/cpu/kept_parameters.h"

#include "core/buffer.h"
#include "layers/cpu/reorder.h"

namespace annulus::cpu {
namespace {

bool is_permutation(const Desc& desc) {
  const Blocking blocking = blocking_of(desc);
  if (blocking.dims.empty() || blocking.dims != blocking.padded) return false;
  std::size_t elements = 1;
  for (const std::int64_t extent : blocking.dims) elements *= static_cast<std::size_t>(extent);
  return desc.get_size() == elements * sizeof(float);
}

}  // namespace

class KeptParameters::Order final : public ParameterLayout {
 public:
  Order(const Engine& engine, const Desc& plain, const Desc& kept)
      : engine_(engine), plain_(plain), kept_(kept) {}

  void pack(const float* plain, float* kept) const override { copy(plain_, plain, kept_, kept); }
  void unpack(const float* kept, float* plain) const override { copy(kept_, kept, plain_, plain); }

 private:
  // Made anew each time: it is for starts and checkpoints, not for steps.
  void copy(const Desc& from, const float* source, const Desc& to, float* target) const {
    WorkspacePlan plan;
    Reorder reorder(engine_, from, to, plan);
    const Buffer workspace = Buffer::host(plan.bytes());
    reorder.run(engine_, source, target, workspace.as<std::byte>());
  }

  const Engine& engine_;
  Desc plain_;
  Desc kept_;
};

const Desc& KeptParameters::keep(int parameter, const Desc& plain, const Desc& wanted) {
  const auto found = kept_.find(parameter);
  if (found != kept_.end()) return found->second.desc;
  if (!choosing_) return plain;
  const bool other = is_permutation(wanted) && !same_memory(plain, wanted);
  Kept kept{other ? wanted : plain, nullptr};
  if (other) kept.order = std::make_shared<Order>(engine_, plain, wanted);
  return kept_.emplace(parameter, std::move(kept)).first->second.desc;
}

const ParameterLayout* KeptParameters::layout(int parameter) const {
  const auto found = kept_.find(parameter);
  return found == kept_.end() ? nullptr : found->second.order.get();
}

}  // namespace annulus::cpu
