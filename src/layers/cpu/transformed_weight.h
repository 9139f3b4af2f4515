// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/buffer.h"
#include "layers/cpu/winograd.h"

namespace annulus::cpu {

// The weight of a convolution by Winograd's algorithm, transformed, for those who use it more than
// once: while evaluating.
class TransformedWeight {
 public:
  TransformedWeight(int parameter, const WinogradShape& shape);

  // Of `weight` (3, 3, in, out) as of `version`.
  const float* get(const float* weight, std::int64_t version);

  int parameter() const { return parameter_; }
  std::size_t bytes() const { return memory_.bytes(); }

 private:
  int parameter_;
  WinogradShape shape_;
  Buffer memory_;
  const float* source_ = nullptr;  // what it was made from
  std::int64_t version_ = 0;
};

// Those of a rank: operations for several batch sizes share them.
class TransformedCache {
 public:
  std::shared_ptr<TransformedWeight> get(int parameter, const WinogradShape& shape);
  std::size_t bytes() const;

 private:
  std::vector<std::weak_ptr<TransformedWeight>> weights_;
};

}  // namespace annulus::cpu
