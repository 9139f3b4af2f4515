// SPDX-License-Identifier: Apache-2.0
#include "core/tensor.h"

#include <cstring>

namespace annulus {

Tensor::Tensor(const Shape& shape, DType dtype) : view_(nullptr, shape, dtype) {
  memory_ = Buffer::host(view_.bytes());
  view_.data = memory_.data();
}

Tensor::Tensor(DeviceContext& device, const Shape& shape, DType dtype)
    : view_(nullptr, shape, dtype, device.kind()) {
  memory_ = device.allocate(view_.bytes());
  view_.data = memory_.data();
}

}  // namespace annulus
