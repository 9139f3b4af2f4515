// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "layers/cpu/dnnl.h"

namespace annulus::cpu {

// Brings a weight from the forward primitives' layout, with inner blocks of 16 inputs by 16
// outputs, into that of backward data, with 16 outputs by 16 inputs: blocks move and are
// transposed. oneDNN's own reorder takes three times as long.
class BlockTranspose {
 public:
  // Nothing where the two layouts do not differ in just that.
  static std::optional<BlockTranspose> between(const Desc& from, const Desc& to);
  void run(const float* from, float* to) const;

 private:
  static constexpr std::int64_t side = 16;
  struct Axis {
    std::int64_t count = 1;
    std::int64_t from_stride = 0;
    std::int64_t to_stride = 0;
  };
  std::vector<Axis> axes_;
  std::int64_t blocks_ = 1;
};

}  // namespace annulus::cpu
