// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/buffer.h"
#include "layers/cpu/block_transpose.h"
#include "layers/cpu/dnnl.h"
#include "layers/cpu/reorder.h"

namespace annulus::cpu {

// A weight in the layout that a primitive wants: a copy made again when the weights change, or the
// weight itself where it is kept in that layout.
class PackedWeight {
 public:
  PackedWeight(const Engine& engine, int parameter, const Desc& kept, const Desc& wanted);

  // The weight as of `version`.
  const void* get(const float* kept, std::int64_t version);

  int parameter() const { return parameter_; }
  const Desc& wanted() const { return wanted_; }
  std::size_t bytes() const { return copy_.bytes() + workspace_.bytes(); }

 private:
  const Engine& engine_;
  int parameter_;
  Desc wanted_;
  Buffer copy_;  // empty: it is wanted as it is kept
  Buffer workspace_;
  std::optional<BlockTranspose> transpose_;
  Reorder reorder_;                // where that is not what is wanted
  const float* source_ = nullptr;  // what the copy was made from
  std::int64_t version_ = 0;
};

// The packed weights of a rank. Operations that share a parameter and want the same layout share
// the copy; it lives as long as one of them.
class WeightCache {
 public:
  explicit WeightCache(const Engine& engine) : engine_(engine) {}

  std::shared_ptr<PackedWeight> get(int parameter, const Desc& kept, const Desc& wanted);
  std::size_t bytes() const;

 private:
  const Engine& engine_;
  std::vector<std::weak_ptr<PackedWeight>> packed_;
};

}  // namespace annulus::cpu
