// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>

#include "core/buffer.h"
#include "core/device.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/shape.h"

namespace annulus {

// Size of a dense tensor. Error (resource) where it does not fit in 63 bits.
std::size_t bytes_of(const Shape& shape, DType dtype);

// A typed, dense, row-major piece of memory that somebody else owns. `device` says where it lies;
// only host memory may be dereferenced. The view does not keep the memory alive.
struct TensorView {
  void* data = nullptr;
  Shape shape;
  DType dtype = DType::f32;
  DeviceKind device = DeviceKind::cpu;

  TensorView() = default;
  TensorView(void* memory, Shape extents, DType type, DeviceKind where = DeviceKind::cpu)
      : data(memory), shape(extents), dtype(type), device(where) {}
  template <class T>
  requires(!std::is_const_v<T>)
      TensorView(std::span<T> elements)  // NOLINT(google-explicit-constructor): a span is a view
      : data(elements.data()),
        shape{static_cast<std::int64_t>(elements.size())},
        dtype(dtype_of<T>) {}

  std::int64_t elements() const { return shape.elements(); }
  std::size_t bytes() const { return bytes_of(shape, dtype); }

  // The elements. Error (bug) unless T is the dtype and the memory is the host's.
  template <class T>
  std::span<T> as() const {
    require(dtype == dtype_of<T>, ErrorKind::bug, "a tensor of {} used as {}", name(dtype),
            name(dtype_of<T>));
    require(device == DeviceKind::cpu, ErrorKind::bug, "device memory used on the host");
    return {static_cast<T*>(data), static_cast<std::size_t>(elements())};
  }
};

// A tensor that owns its memory, on the host or on a device.
class Tensor {
 public:
  Tensor() = default;
  // Host memory, zeroed.
  Tensor(const Shape& shape, DType dtype);
  // Memory of a device, with its contents undefined.
  Tensor(DeviceContext& device, const Shape& shape, DType dtype);

  const TensorView& view() const { return view_; }
  const Shape& shape() const { return view_.shape; }
  template <class T>
  std::span<T> as() const {
    return view_.as<T>();
  }

 private:
  Buffer memory_;
  TensorView view_;
};

}  // namespace annulus
