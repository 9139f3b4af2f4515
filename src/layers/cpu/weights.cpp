// SPDX-License-Identifier: Apache-2.0
#include "layers/cpu/weights.h"

namespace annulus::cpu {

PackedWeight::PackedWeight(const Engine& engine, int parameter, const Desc& kept,
                           const Desc& wanted)
    : engine_(engine), parameter_(parameter), wanted_(wanted) {
  if (same_memory(kept, wanted)) return;
  copy_ = Buffer::host(wanted.get_size());
  transpose_ = BlockTranspose::between(kept, wanted);
  if (transpose_) return;
  WorkspacePlan plan;
  reorder_ = Reorder(engine, kept, wanted, plan);
  workspace_ = Buffer::host(plan.bytes());
}

const void* PackedWeight::get(const float* kept, std::int64_t version) {
  if (copy_.bytes() == 0) return kept;
  if (source_ != kept || version_ != version) {
    if (transpose_) {
      transpose_->run(kept, copy_.as<float>());
    } else {
      reorder_.run(engine_, kept, copy_.data(), workspace_.as<std::byte>());
    }
    source_ = kept;
    version_ = version;
  }
  return copy_.data();
}

std::shared_ptr<PackedWeight> WeightCache::get(int parameter, const Desc& kept,
                                               const Desc& wanted) {
  std::erase_if(packed_, [](const auto& entry) { return entry.expired(); });
  for (const auto& entry : packed_) {
    std::shared_ptr<PackedWeight> weight = entry.lock();
    if (weight->parameter() == parameter && weight->wanted() == wanted) return weight;
  }
  auto weight = std::make_shared<PackedWeight>(engine_, parameter, kept, wanted);
  packed_.push_back(weight);
  return weight;
}

std::size_t WeightCache::bytes() const {
  std::size_t total = 0;
  for (const auto& entry : packed_) {
    if (const auto weight = entry.lock()) total += weight->bytes();
  }
  return total;
}

}  // namespace annulus::cpu
