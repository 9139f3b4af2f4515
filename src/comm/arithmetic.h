// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

namespace annulus {

enum class ReduceOp;

// How two vectors of some type become one: to[i] = a[i] op b[i]. `to` may be `a` or `b`. All are
// aligned to their elements. Commutative: the order of a and b does not matter.
struct Arithmetic {
  void (*combine)(std::byte* to, const std::byte* a, const std::byte* b, std::int64_t count);
  std::int64_t element;  // bytes
};

// Error (bug) where the type has no such operation. Sums of integers wrap around; a minimum or
// maximum with NaN is NaN.
Arithmetic arithmetic_of(DType dtype, ReduceOp op);

// -0.0 does not change any sum, not even one that is -0.0; so it stands for "nothing".
void fill_with_nothing(float* data, std::int64_t count);

}  // namespace annulus
