// SPDX-License-Identifier: Apache-2.0
#include "core/shape.h"

#include <algorithm>

#include "core/error.h"

namespace annulus {

Shape::Shape(std::initializer_list<std::int64_t> extents)
    : Shape(std::span<const std::int64_t>(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const std::int64_t> extents) : rank_(extents.size()) {
  require(extents.size() <= max_rank, ErrorKind::usage, "a tensor has at most {} axes, not {}",
          max_rank, extents.size());
  for (std::int64_t extent : extents) {
    require(extent >= 0, ErrorKind::usage, "an extent is at least 0, not {}", extent);
  }
  std::copy(extents.begin(), extents.end(), extents_.begin());
}

std::int64_t Shape::elements() const {
  return elements_from(0);
}

std::int64_t Shape::elements_from(std::size_t axis) const {
  std::int64_t product = 1;
  for (std::size_t i = axis; i < rank_; ++i) {
    if (__builtin_mul_overflow(product, extents_[i], &product)) {
      fail(ErrorKind::usage, "a tensor of shape {} has more than 2^63 elements", to_string(*this));
    }
  }
  return product;
}

Shape Shape::with_batch(std::int64_t batch) const {
  Shape result;
  require(rank_ < max_rank, ErrorKind::usage, "a tensor has at most {} axes", max_rank);
  result.rank_ = rank_ + 1;
  result.extents_[0] = batch;
  std::copy(begin(), end(), result.extents_.begin() + 1);
  return result;
}

Shape Shape::without_batch() const {
  require(rank_ > 0, ErrorKind::bug, "a scalar has no batch axis");
  return Shape(std::span<const std::int64_t>(begin() + 1, rank_ - 1));
}

bool operator==(const Shape& a, const Shape& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

std::string to_string(const Shape& shape) {
  if (shape.rank() == 0) return "scalar";
  std::string text;
  for (std::int64_t extent : shape) {
    if (!text.empty()) text += 'x';
    text += std::to_string(extent);
  }
  return text;
}

}  // namespace annulus
