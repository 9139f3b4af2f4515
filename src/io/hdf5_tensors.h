// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "core/dtype.h"
#include "core/shape.h"

namespace annulus {

// The tensors of a checkpoint's file. Errors are Error (output).
class TensorFile {
 public:
  explicit TensorFile(std::string path);
  ~TensorFile();
  TensorFile(const TensorFile&) = delete;
  TensorFile& operator=(const TensorFile&) = delete;

  // All elements, in the byte order of memory. The data set must have this shape and element size.
  void read(const std::string& name, const Shape& shape, DType dtype,
            std::span<std::byte> to) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace annulus
