// SPDX-License-Identifier: Apache-2.0
#include "comm/arithmetic.h"

#include <algorithm>
#include <type_traits>

#include "comm/communicator.h"
#include "core/error.h"

namespace annulus {
namespace {

struct Sum {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      using Wrapping = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<Wrapping>(a) + static_cast<Wrapping>(b));
    } else {
      return a + b;
    }
  }
};

struct Min {
  template <class T>
  static T apply(T a, T b) {
    if (a != a) return a;
    return b < a || b != b ? b : a;
  }
};

struct Max {
  template <class T>
  static T apply(T a, T b) {
    if (a != a) return a;
    return a < b || b != b ? b : a;
  }
};

template <class T, class Op>
void combine(std::byte* to, const std::byte* a, const std::byte* b, std::int64_t count) {
  auto* out = reinterpret_cast<T*>(to);
  const auto* x = reinterpret_cast<const T*>(a);
  const auto* y = reinterpret_cast<const T*>(b);
  // Where `to` is an operand, it is at the same index, so iterations stay independent.
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) out[i] = Op::apply(x[i], y[i]);
}

template <class T>
Arithmetic of_type(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return {combine<T, Sum>, sizeof(T)};
    case ReduceOp::min:
      return {combine<T, Min>, sizeof(T)};
    case ReduceOp::max:
      return {combine<T, Max>, sizeof(T)};
  }
  fail(ErrorKind::bug, "no such reduction");
}

}  // namespace

Arithmetic arithmetic_of(DType dtype, ReduceOp op) {
  switch (dtype) {
    case DType::f32:
      return of_type<float>(op);
    case DType::f64:
      return of_type<double>(op);
    case DType::i32:
      return of_type<std::int32_t>(op);
    case DType::i64:
      return of_type<std::int64_t>(op);
    case DType::u8:
      if (op != ReduceOp::sum) return of_type<std::uint8_t>(op);
      break;
    case DType::f16:
    case DType::bf16:
      break;
  }
  fail(ErrorKind::bug, "ranks cannot reduce tensors of {} in this way", name(dtype));
}

void fill_with_nothing(float* data, std::int64_t count) {
  std::fill_n(data, count, -0.0F);
}

}  // namespace annulus
