// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/schema.h"

namespace annulus {

// [optimizer.schedule]: how the learning rate changes with updates. Lengths are given in updates or
// in epochs (the key with _epochs), not both.
struct ScheduleSpec {
  std::string kind = "constant";  // constant, step, multistep, polynomial, cosine
  std::int64_t warmup = 0;        // updates
  double warmup_epochs = 0;
  std::int64_t every = 0;  // step: updates between two drops
  double every_epochs = 0;
  double gamma = 0.1;                    // step and multistep: factor of a drop
  std::vector<std::int64_t> milestones;  // multistep: updates at which the rate drops
  std::vector<double> milestones_epochs;
  double power = 1;   // polynomial
  double end_lr = 0;  // polynomial and cosine: rate at the end and after it
};

Schema describe(ScheduleSpec& spec);

// The learning rate as a pure function of the update's number.
class Schedule {
 public:
  // `total` updates in the run, `steps_per_epoch` updates in an epoch (with the last partial
  // batch). Error (usage) where warm-up is longer than the run, or a kind lacks what it needs.
  Schedule(const ScheduleSpec& spec, double base_lr, std::int64_t total,
           std::int64_t steps_per_epoch);

  // The rate that update `step` (from 0) uses. During warm-up base (s + 1) / warmup; then the curve
  // over what remains, from its own step 0. Milestones and drops count absolute updates. Never
  // negative; at and after `total` the end of the curve.
  double lr(std::int64_t step) const;

 private:
  ScheduleSpec spec_;
  double base_;
  std::int64_t total_;
  std::int64_t warmup_ = 0;
  std::int64_t every_ = 0;
  std::vector<std::int64_t> milestones_;
};

}  // namespace annulus
