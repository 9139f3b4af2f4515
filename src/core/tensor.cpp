// SPDX-License-Identifier: Apache-2.0
#include "core/tensor.h"

namespace annulus {

std::size_t bytes_of(const Shape& shape, DType dtype) {
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(shape.elements(), size_of(dtype), &bytes)) {
    fail(ErrorKind::resource, "a tensor of shape {} and type {} has more than 2^63 bytes",
         to_string(shape), name(dtype));
  }
  return static_cast<std::size_t>(bytes);
}

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
