// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/options.h"
#include "comm/communicator.h"
#include "core/log.h"
#include "core/value.h"
#include "layers/graph.h"
#include "train/run_spec.h"

namespace annulus {

// One experiment, read and checked.
struct RunConfig {
  Value value;   // resolved: includes and sets applied, paths absolute
  RunSpec spec;  // its model has moved into the graph
  std::unique_ptr<Graph> graph;

  // As the text that is kept in the run directory and in checkpoints.
  std::string text() const;
};

// Reads a file with its includes and sets; a [sweep] gives one value a point. Paths become
// absolute. Error (usage).
std::vector<Value> read_configs(const ConfigOptions& options);

// Checks one config to the end, its graph included. Error (usage) with all problems; warnings go to
// `warnings`.
RunConfig check_config(Value value, std::vector<std::string>& warnings);

// Rank 0 reads and checks the file, all ranks get the result. Error (usage) where a rank was
// started for another config. Collective.
std::vector<RunConfig> load_configs(Communicator& comm, const ConfigOptions& options, Log& log);

// The same where a command takes one experiment only. Error (usage) for a sweep.
RunConfig load_one_config(Communicator& comm, const ConfigOptions& options, Log& log);

// Error (usage), agreed on, unless the config has test data.
void require_test_data(const RunConfig& config, const Communicator& comm);

}  // namespace annulus
