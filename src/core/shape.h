// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace annulus {

// The extents of a tensor, outermost first (N, C, (D,) H, W); at most max_rank of them, each >= 0.
// A value type without heap memory.
class Shape {
 public:
  static constexpr std::size_t max_rank = 6;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents);
  explicit Shape(std::span<const std::int64_t> extents);

  std::size_t rank() const { return rank_; }
  std::int64_t operator[](std::size_t axis) const { return extents_[axis]; }
  std::int64_t& operator[](std::size_t axis) { return extents_[axis]; }
  const std::int64_t* begin() const { return extents_.data(); }
  const std::int64_t* end() const { return extents_.data() + rank_; }

  // Product of the extents; 1 for rank 0. Error (usage) where it does not fit in 64 bits.
  std::int64_t elements() const;
  // Product of the extents from `axis` on.
  std::int64_t elements_from(std::size_t axis) const;

  // This shape with one more extent in front: a sample's shape to a batch's.
  Shape with_batch(std::int64_t batch) const;
  // This shape without its first extent.
  Shape without_batch() const;

  friend bool operator==(const Shape& a, const Shape& b);

 private:
  std::array<std::int64_t, max_rank> extents_{};
  std::size_t rank_ = 0;
};

// "64x3x224x224"; "scalar" for rank 0.
std::string to_string(const Shape& shape);

}  // namespace annulus
