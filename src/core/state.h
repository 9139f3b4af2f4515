// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/tensor.h"

namespace annulus {

// A named tensor that can be saved and restored. `read` fills host memory with its elements and
// `write` sets them from host memory, both in the logical row-major layout, whatever device or
// layout the tensor itself has.
struct StateTensor {
  std::string name;
  Shape shape;
  DType dtype = DType::f32;
  std::function<void(std::span<std::byte>)> read;
  std::function<void(std::span<const std::byte>)> write;

  std::size_t bytes() const { return bytes_of(shape, dtype); }
};

// A named scalar, by reference to the variable of its owner.
struct StateScalar {
  std::string name;
  std::variant<std::int64_t*, double*, std::string*> value;
};

// All that must be saved to go on later: what the model, the optimizer and the trainer add to it.
// It refers to its owners' memory, which must outlive it.
class NamedState {
 public:
  void add(StateTensor tensor);
  // A dense host tensor.
  void add(std::string name, TensorView view);
  void add(std::string name, std::int64_t* value);
  void add(std::string name, double* value);
  void add(std::string name, std::string* value);

  const std::vector<StateTensor>& tensors() const { return tensors_; }
  const std::vector<StateScalar>& scalars() const { return scalars_; }

 private:
  void claim(std::string_view name);  // Error (bug) where the name is taken

  std::vector<StateTensor> tensors_;
  std::vector<StateScalar> scalars_;
};

// The 64-bit XXH3 over name, shape and bytes of each tensor in the order of their names, as 16
// hexadecimal digits: equal for equal weights, however they were made.
std::string hash_of(std::span<const StateTensor> tensors);

}  // namespace annulus
