// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "comm/gradient_reducer.h"
#include "core/progress.h"
#include "core/update_ops.h"
#include "io/loader.h"
#include "train/batch_plan.h"
#include "train/optimizer.h"
#include "train/replica.h"
#include "train/schedule.h"
#include "train/step_record.h"

namespace annulus {

// Where the time of one step went on this rank; the parts add up to `step`.
struct StepTimes {
  double step_s = 0;
  double data_s = 0;     // waiting for the loader
  double forward_s = 0;  // forward and loss
  double backward_s = 0;
  double wait_s = 0;  // for gradients of other ranks, after backward
  double update_s = 0;
};

struct StepReport {
  LossSums sums;  // of the global batch
  UpdateReport update;
  double lr = 0;
  bool stop_wanted = false;  // some rank asked to stop
  std::int64_t bad_shard =
      -1;  // the first one whose loss is not finite; the weights are then unchanged
  StepTimes times;
};

// What a step works on; all of it outlives the step.
struct StepParts {
  const BatchPlan& plan;
  Span64 own;  // this rank's shards
  Loader& loader;
  Replica& replica;
  GradientReducer& reducer;
  Optimizer& optimizer;
  const Schedule& schedule;
  UpdateOps& ops;
  Progress& progress;
};

// One step of training: batches in, new weights out, the same on every rank. Allocates nothing.
class Step {
 public:
  Step(const StepParts& parts, const StepRecord& record);

  // Iteration `iteration`, as update `update`. `stop`: this rank asks all to stop. Error (numeric)
  // on every rank alike where the loss or the gradient is not finite.
  StepReport run(std::int64_t iteration, std::int64_t update, bool stop);

 private:
  void run_shard(std::int64_t iteration, std::int64_t shard, bool stop, StepTimes& times);
  const LoadedBatch* next_batch(Trace* trace);
  std::span<float> finished_sum();
  void apply(std::int64_t iteration, std::int64_t update, StepReport& report);

  StepParts parts_;
  StepRecord record_;
  Executor::GradientReady gradient_ready_;
};

}  // namespace annulus
