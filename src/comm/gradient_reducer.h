// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/shards.h"

namespace annulus {

// One bucket: the elements [begin, end) of the flat gradient buffer, summed in one go.
using Bucket = Span64;

// Cuts the flat buffer into buckets along tensor borders. `tensors` are the sizes in elements, in
// the order in which backward finishes them; `tail` elements follow them (running statistics,
// counts) and belong to the last bucket. A bucket holds at most `bucket_bytes`, but a tensor larger
// than that has one of its own. The last one is kept small (`last_bytes`, or one tensor), since
// nothing is left to hide it behind. Pure; the same on every rank.
std::vector<Bucket> plan_buckets(std::span<const std::int64_t> tensors, std::int64_t tail,
                                 std::int64_t bucket_bytes, std::int64_t last_bytes);

struct ReducerLayout {
  std::vector<std::int64_t> tensors;  // elements of each gradient, in the order they become ready
  std::int64_t tail = 0;              // elements after them, ready with end_shard()
  std::int64_t shards = 1;            // S, of the whole job
  std::int64_t bucket_bytes = 25 << 20;
  std::int64_t last_bytes = 1 << 20;
};

// Whether the sum over `shards` shards on these ranks goes along the very same tree as on one rank,
// so that the result is the same bit for bit. Otherwise it is equal to rounding.
bool sum_is_exact(std::int64_t shards, std::span<const int> ranks_by_node);

// Sums the flat gradient buffer over all shards of all ranks along one fixed binary tree over shard
// numbers: in a rank as its shards come, then in the node, then across nodes. It owns the
// gradients' memory. One step is
//
//   begin_step();
//   for each own shard: { buffer = begin_shard(); ... tensor_ready(0), tensor_ready(1), ...;
//   end_shard(); } sum = finish();
//
// A rank without shards calls begin_step and finish alone. Nothing is allocated in a step. Calls
// out of order are an Error (bug). Called from the trainer's thread.
class GradientReducer {
 public:
  virtual ~GradientReducer() = default;

  virtual void begin_step() = 0;
  // Where the next own shard writes its gradients (undefined contents; the shard writes all of it,
  // tensors and tail, with zeros where it has none). The address may differ from shard to shard.
  virtual std::span<float> begin_shard() = 0;
  // Tensors 0 to `tensor` of the current shard are final. In the rank's last shard every bucket
  // that is complete starts on its way while the caller goes on.
  virtual void tensor_ready(int tensor) = 0;
  // All tensors and the tail are final.
  virtual void end_shard() = 0;
  // Waits for all buckets: the sum over all shards, the same bits on every rank. The caller may
  // change it; it is valid until the next begin_step. Error (peer) after the deadline.
  virtual std::span<float> finish() = 0;

  virtual const std::vector<Bucket>& buckets() const = 0;
  // Memory of the gradient buffers of this rank.
  virtual std::size_t bytes() const = 0;
};

}  // namespace annulus
