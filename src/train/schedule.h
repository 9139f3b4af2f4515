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
// Checks what the keys mean together; `table` is [optimizer.schedule] as written, for the places.
void check(const ScheduleSpec& spec, const Value& table, Problems& problems);

// The learning rate as a pure function of the update's number.
class Schedule {
 public:
  // `base_lr` as given by base_lr(OptimizerSpec), `total` updates in the run, `steps_per_epoch`
  // updates in an epoch (with the last partial batch). Lengths in epochs are rounded to whole
  // updates. Error (usage) where warm-up is longer than the run, or check() finds a problem.
  Schedule(const ScheduleSpec& spec, double base_lr, std::int64_t total,
           std::int64_t steps_per_epoch);

  // The rate that update `step` (from 0) uses. For s < warmup it is base (s + 1) / warmup; then
  //   constant    base
  //   step        base gamma^floor(s / every)
  //   multistep   base gamma^(number of milestones <= s)
  //   polynomial  end_lr + (base - end_lr) (1 - x)^power
  //   cosine      end_lr + (base - end_lr) (1 + cos(pi x)) / 2
  // where x = (s - warmup) / (total - warmup): curves run over what warm-up leaves, drops count
  // absolute updates. The last update of a run, total - 1, is one step before x = 1; from `total`
  // on the rate stays what it is at `total`. Never negative.
  double lr(std::int64_t step) const;

 private:
  enum class Curve { constant, step, multistep, polynomial, cosine };
  static Curve curve_of(const std::string& kind);

  double decay(std::int64_t step) const;  // the weight of base against end_lr
  std::int64_t drops(std::int64_t step) const;

  ScheduleSpec spec_;
  Curve curve_;
  double base_;
  std::int64_t total_;
  std::int64_t warmup_ = 0;
  std::int64_t every_ = 1;
  std::vector<std::int64_t> milestones_;
};

}  // namespace annulus
