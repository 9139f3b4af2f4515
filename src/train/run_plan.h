// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/value.h"
#include "layers/graph.h"
#include "train/batch_plan.h"
#include "train/run_spec.h"
#include "train/schedule.h"

namespace annulus {

// What a run of a config comes to in numbers. It is worked out before anything is made, by `check`
// and at the start of every run alike, so that the one refuses what the other would.
struct RunPlan {
  BatchPlan batches;
  std::int64_t updates;
  Schedule schedule;
};

// What [data] and the model's inputs mean together: lengths of `mean` and `std`, augmentation of
// what is no image. `config` gives the places. Adds to `problems`.
void check_inputs(const RunSpec& spec, const Graph& graph, const Value& config, Problems& problems);

// `spec` has its shards settled, and its model moved into `graph`; `samples` of the training set.
// Error (usage) with its place in `config`: no step in an epoch, more shards than samples in a
// batch, a shard with a single value for a channel of batch normalisation, a schedule or a number
// of updates that cannot be.
RunPlan plan_run(const RunSpec& spec, const Graph& graph, const Value& config,
                 std::int64_t samples);

// One line each for what will run, but hardly as meant: ranks that are left without a shard.
std::vector<std::string> doubts(const RunPlan& plan, std::int64_t ranks);

}  // namespace annulus
