// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/comm_spec.h"
#include "core/schema.h"
#include "core/value.h"
#include "io/data_spec.h"
#include "layers/model_spec.h"
#include "layers/ops.h"
#include "train/optimizer.h"

namespace annulus {

// [batch]
struct BatchSpec {
  std::int64_t global = 0;    // samples that one update sees, whatever the number of ranks
  std::int64_t shards = 0;    // 0: the number of ranks
  std::int64_t evaluate = 0;  // samples in a chunk of evaluation; 0: the size of a shard
};

// [train]
struct TrainSpec {
  std::int64_t epochs = 0;      // one of epochs and steps
  std::int64_t steps = 0;       // updates
  std::int64_t log_every = 10;  // updates
  std::int64_t save_every = 0;  // updates; 0: at the end alone
  std::int64_t save_every_epochs = 0;
  std::int64_t evaluate_every = 0;  // updates; 0: at the end alone
  std::int64_t evaluate_every_epochs = 0;
  std::string resume = "off";  // off, auto, required
  double max_seconds = 0;      // 0: no limit
  std::int64_t profile = 0;    // steps whose trace is written; 0: none
  bool debug_memory = false;   // each tensor its own memory, poisoned when dead
};

// [cpu]
struct CpuSpec {
  std::string winograd = "auto";  // auto, off
};

// All that a config says.
struct RunSpec {
  std::string name = "run";
  std::int64_t seed = 1;
  std::string device = "auto";  // auto, cpu, cuda
  std::string precision = "fp32";
  bool deterministic = true;
  std::int64_t threads = 0;        // compute threads a rank; 0: allowed cores / local ranks
  std::string placement = "auto";  // auto, off
  DataOptions data;
  BatchSpec batch;
  OptimizerSpec optimizer;
  TrainSpec train;
  ModelSpec model;
  CommSpec comm;
  CpuSpec cpu;
};

// What the config asks of a backend.
BackendOptions backend_options(const RunSpec& spec);

// The whole schema: what docs/config.md lists.
Schema describe(RunSpec& spec);

// All keys of a config: those of the schema, those that every layer may have, as
// "model.layers.name", and those of each kind of layer, as "model.layers.conv.kernel".
std::vector<DocumentedKey> all_keys();

// Some lengths can be given in updates or in epochs, one of both. Where a `--set` gives one and the
// file the other, the set wins: the other is removed.
void let_sets_win(Value& config);

// Fills `spec` from a config whose blocks are expanded, and checks what keys mean together (both
// epochs and steps, neither, more shards than samples in a batch, ...). Adds to `problems`.
// Synthetic data without data.samples gets 16 batches, with a warning.
void read_run_spec(const Value& config, RunSpec& spec, Problems& problems);

}  // namespace annulus
