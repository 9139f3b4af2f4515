// SPDX-License-Identifier: Apache-2.0
#include "train/batch_plan.h"

#include <algorithm>
#include <set>

#include "core/error.h"

namespace annulus {

BatchPlan::BatchPlan(std::int64_t samples, std::int64_t global, std::int64_t shards, bool drop_last)
    : samples_(samples), global_(global), shards_(shards) {
  require(samples >= 0 && global >= 1 && shards >= 1, ErrorKind::bug,
          "a plan for {} samples in batches of {} and {} shards", samples, global, shards);
  const bool partial = samples % global != 0 && !drop_last;
  steps_ = samples / global + (partial ? 1 : 0);
  require(steps_ > 0, ErrorKind::usage, "0 steps per epoch: {} samples < global batch {}{}",
          samples, global,
          samples > 0 ? "; set data.drop_last = false or a smaller batch.global" : "");
}

std::int64_t BatchPlan::batch_size(std::int64_t iteration) const {
  return std::min(global_, samples_ - iteration % steps_ * global_);
}

Slice BatchPlan::slice(std::int64_t iteration, std::int64_t shard) const {
  const Span64 share = share_of(batch_size(iteration), shard, shards_);
  return {iteration, epoch_of(iteration), iteration % steps_ * global_ + share.begin,
          share.count()};
}

std::vector<std::int64_t> BatchPlan::shard_sizes(Span64 own) const {
  std::set<std::int64_t> sizes;
  // Batches differ in size at the end of an epoch alone.
  for (const std::int64_t batch : {batch_size(0), batch_size(steps_ - 1)}) {
    for (std::int64_t shard = own.begin; shard < own.end; ++shard) {
      const std::int64_t count = share_of(batch, shard, shards_).count();
      if (count > 0) sizes.insert(count);
    }
  }
  return {sizes.begin(), sizes.end()};
}

}  // namespace annulus
