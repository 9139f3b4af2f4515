// SPDX-License-Identifier: Apache-2.0
#include "layers/cpu/transformed_weight.h"

namespace annulus::cpu {

TransformedWeight::TransformedWeight(int parameter, const WinogradShape& shape)
    : parameter_(parameter), shape_(shape), memory_(Buffer::host(winograd_weight_bytes(shape))) {}

const float* TransformedWeight::get(const float* weight, std::int64_t version) {
  if (source_ != weight || version_ != version) {
    winograd_transform_weight(shape_, weight, memory_.as<float>());
    source_ = weight;
    version_ = version;
  }
  return memory_.as<float>();
}

std::shared_ptr<TransformedWeight> TransformedCache::get(int parameter,
                                                         const WinogradShape& shape) {
  std::erase_if(weights_, [](const auto& entry) { return entry.expired(); });
  for (const auto& entry : weights_) {
    std::shared_ptr<TransformedWeight> weight = entry.lock();
    if (weight->parameter() == parameter) return weight;
  }
  auto weight = std::make_shared<TransformedWeight>(parameter, shape);
  weights_.push_back(weight);
  return weight;
}

std::size_t TransformedCache::bytes() const {
  std::size_t total = 0;
  for (const auto& entry : weights_) {
    if (const auto weight = entry.lock()) total += weight->bytes();
  }
  return total;
}

}  // namespace annulus::cpu
