// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "layers/ops.h"

namespace annulus {

// LossSums as plain numbers, to be carried and added up.
using LossFields = std::array<double, 5>;
LossFields to_fields(const LossSums& sums);
LossSums from_fields(const LossFields& values);

// The tail of the flat gradient buffer: beside the gradients, a step must add up batch statistics,
// losses and votes over all shards, and these ride in the last bucket. The tail is
//
//   batch_sums[statistics] | one record a shard | votes
//
// A shard fills its own record and leaves the others zero, so that the sum over shards holds every
// record unchanged whatever the order of the additions; a double is carried as three floats, whose
// sum it is exactly. Losses are then added up in fp64 in the order of shards, on every rank alike.
class StepRecord {
 public:
  StepRecord(std::int64_t statistics, std::int64_t shards);

  std::int64_t elements() const { return votes_begin() + 1; }

  // A shard's tail before its forward pass: all zero.
  void clear(std::span<float> tail) const;
  std::span<float> batch_sums(std::span<float> tail) const;
  void put(std::span<float> tail, std::int64_t shard, const LossSums& sums) const;
  void vote_to_stop(std::span<float> tail) const;

  // From the sum over all shards:
  LossSums total(std::span<const float> tail) const;
  // The first shard whose loss is not finite; -1: none.
  std::int64_t first_bad_shard(std::span<const float> tail) const;
  bool stop_wanted(std::span<const float> tail) const;

 private:
  std::int64_t record(std::int64_t shard) const;
  std::int64_t votes_begin() const { return record(shards_); }
  LossSums get(std::span<const float> tail, std::int64_t shard) const;

  std::int64_t statistics_;
  std::int64_t shards_;
};

}  // namespace annulus
