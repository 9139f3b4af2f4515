// SPDX-License-Identifier: Apache-2.0
#include "layers/cpu/block_transpose.h"

#include <algorithm>

#include "core/cpu/parallel.h"

namespace annulus::cpu {
namespace {

bool has_blocks(const Blocking& blocking, const Dims& sides) {
  return !blocking.dims.empty() && blocking.dims == blocking.padded &&
         blocking.inner_blocks == sides;
}

}  // namespace

std::optional<BlockTranspose> BlockTranspose::between(const Desc& from, const Desc& to) {
  const Blocking a = blocking_of(from);
  const Blocking b = blocking_of(to);
  const Dims sides{side, side};
  if (!has_blocks(a, sides) || !has_blocks(b, sides) || a.dims != b.dims) return std::nullopt;
  if (a.inner_axes[0] != b.inner_axes[1] || a.inner_axes[1] != b.inner_axes[0]) return std::nullopt;
  BlockTranspose result;
  for (std::size_t axis = 0; axis < a.dims.size(); ++axis) {
    const bool blocked = a.inner_axes[0] == static_cast<std::int64_t>(axis) ||
                         a.inner_axes[1] == static_cast<std::int64_t>(axis);
    const std::int64_t count = a.dims[axis] / (blocked ? side : 1);
    result.axes_.push_back({count, a.strides[axis], b.strides[axis]});
    result.blocks_ *= count;
  }
  return result;
}

void BlockTranspose::run(const float* from, float* to) const {
  constexpr std::int64_t grain = 64;  // blocks a thread, below which a thread costs more
  parallel_for(blocks_, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      const float* source = from;
      float* target = to;
      std::int64_t rest = block;
      for (std::size_t axis = axes_.size(); axis-- > 0;) {
        const Axis& a = axes_[axis];
        source += rest % a.count * a.from_stride;
        target += rest % a.count * a.to_stride;
        rest /= a.count;
      }
      for (std::int64_t i = 0; i < side; ++i) {
        for (std::int64_t j = 0; j < side; ++j) target[i * side + j] = source[j * side + i];
      }
    }
  });
}

}  // namespace annulus::cpu
