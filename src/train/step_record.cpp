// SPDX-License-Identifier: Apache-2.0
#include "train/step_record.h"

#include <algorithm>
#include <cmath>

namespace annulus {
namespace {

constexpr auto fields = static_cast<std::int64_t>(LossFields{}.size());
constexpr std::int64_t floats_a_double = 3;  // 3 x 24 bits hold the 53 of a double

void split(double value, float* parts) {
  for (std::int64_t i = 0; i < floats_a_double; ++i) {
    parts[i] = static_cast<float>(value);
    // What is not finite is carried by its first part alone: inf - inf would be NaN.
    value = std::isfinite(parts[i]) ? value - static_cast<double>(parts[i]) : 0;
  }
}

double join(const float* parts) {
  return (static_cast<double>(parts[0]) + static_cast<double>(parts[1])) +
         static_cast<double>(parts[2]);
}

}  // namespace

LossFields to_fields(const LossSums& sums) {
  return {sums.loss, sums.counted, sums.correct[0], sums.correct[1], sums.absolute_error};
}

LossSums from_fields(const LossFields& values) {
  LossSums sums;
  sums.loss = values[0];
  sums.counted = values[1];
  sums.correct[0] = values[2];
  sums.correct[1] = values[3];
  sums.absolute_error = values[4];
  return sums;
}

StepRecord::StepRecord(std::int64_t statistics, std::int64_t shards)
    : statistics_(statistics), shards_(shards) {}

std::int64_t StepRecord::record(std::int64_t shard) const {
  return statistics_ + shard * fields * floats_a_double;
}

void StepRecord::clear(std::span<float> tail) const {
  std::fill(tail.begin(), tail.end(), 0.0F);
}

std::span<float> StepRecord::batch_sums(std::span<float> tail) const {
  return tail.first(static_cast<std::size_t>(statistics_));
}

void StepRecord::put(std::span<float> tail, std::int64_t shard, const LossSums& sums) const {
  float* to = tail.data() + record(shard);
  for (double value : to_fields(sums)) {
    split(value, to);
    to += floats_a_double;
  }
}

void StepRecord::vote_to_stop(std::span<float> tail) const {
  tail[static_cast<std::size_t>(votes_begin())] = 1;
}

LossSums StepRecord::get(std::span<const float> tail, std::int64_t shard) const {
  const float* from = tail.data() + record(shard);
  LossFields values;
  for (double& value : values) {
    value = join(from);
    from += floats_a_double;
  }
  return from_fields(values);
}

LossSums StepRecord::total(std::span<const float> tail) const {
  LossSums sum;
  for (std::int64_t shard = 0; shard < shards_; ++shard) sum += get(tail, shard);
  return sum;
}

std::int64_t StepRecord::first_bad_shard(std::span<const float> tail) const {
  for (std::int64_t shard = 0; shard < shards_; ++shard) {
    if (!std::isfinite(get(tail, shard).loss)) return shard;
  }
  return -1;
}

bool StepRecord::stop_wanted(std::span<const float> tail) const {
  return tail[static_cast<std::size_t>(votes_begin())] > 0;
}

}  // namespace annulus
