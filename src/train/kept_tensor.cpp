// SPDX-License-Identifier: Apache-2.0
#include "train/kept_tensor.h"

#include <utility>
#include <vector>

namespace annulus {

StateTensor kept_tensor(std::string name, const Shape& shape, float* data,
                        const ParameterLayout* layout, DeviceContext& device) {
  StateTensor tensor{std::move(name), shape, DType::f32, {}, {}};
  const auto elements = static_cast<std::size_t>(shape.elements());
  DeviceContext* const queue = &device;
  tensor.read = [=](std::span<std::byte> to) {
    std::vector<float> kept(layout == nullptr ? 0 : elements);
    void* target = layout == nullptr ? static_cast<void*>(to.data()) : kept.data();
    queue->copy(target, data, elements * sizeof(float));
    queue->synchronize();
    if (layout != nullptr) layout->unpack(kept.data(), reinterpret_cast<float*>(to.data()));
  };
  tensor.write = [=](std::span<const std::byte> from) {
    std::vector<float> kept(layout == nullptr ? 0 : elements);
    if (layout != nullptr) layout->pack(reinterpret_cast<const float*>(from.data()), kept.data());
    const void* source = layout == nullptr ? static_cast<const void*>(from.data()) : kept.data();
    queue->copy(data, source, elements * sizeof(float));
    queue->synchronize();
  };
  return tensor;
}

}  // namespace annulus
