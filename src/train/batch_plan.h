// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/shards.h"
#include "io/loader.h"

namespace annulus {

// How samples become batches and shards: arithmetic alone, the same on every rank.
class BatchPlan {
 public:
  // `samples` in the data set, `global` in a batch, cut into `shards`. Error (usage) where an epoch
  // would have no step ("0 steps per epoch: 10 samples < global batch 64"), (bug) where `global` or
  // `shards` is not positive.
  BatchPlan(std::int64_t samples, std::int64_t global, std::int64_t shards, bool drop_last);

  std::int64_t samples() const { return samples_; }
  std::int64_t global() const { return global_; }
  std::int64_t shards() const { return shards_; }
  std::int64_t steps_per_epoch() const { return steps_; }
  std::int64_t epoch_of(std::int64_t iteration) const { return iteration / steps_; }
  // Samples in the global batch of an iteration: `global`, fewer in the last one of an epoch.
  std::int64_t batch_size(std::int64_t iteration) const;
  // Shard `shard` of iteration `iteration`; its count is 0 where a short batch leaves it none.
  Slice slice(std::int64_t iteration, std::int64_t shard) const;
  // All non-zero sizes that shards [own.begin, own.end) can have, in increasing order.
  std::vector<std::int64_t> shard_sizes(Span64 own) const;

 private:
  std::int64_t samples_;
  std::int64_t global_;
  std::int64_t shards_;
  std::int64_t steps_ = 0;
};

}  // namespace annulus
