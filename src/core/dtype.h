// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace annulus {

// Element types of tensors. f16 and bf16 are storage types: arithmetic on them is a backend's.
enum class DType : std::uint8_t { f32, f64, f16, bf16, i32, i64, u8 };

std::size_t size_of(DType dtype);  // bytes of one element
const char* name(DType dtype);     // "f32", ...

// The DType of a C++ type: dtype_of<float> is DType::f32.
template <class T>
inline constexpr DType dtype_of = static_cast<DType>(255);
template <>
inline constexpr DType dtype_of<float> = DType::f32;
template <>
inline constexpr DType dtype_of<double> = DType::f64;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::i32;
template <>
inline constexpr DType dtype_of<std::int64_t> = DType::i64;
template <>
inline constexpr DType dtype_of<std::uint8_t> = DType::u8;

}  // namespace annulus
