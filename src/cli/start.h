// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/run_config.h"
#include "comm/communicator.h"
#include "core/device.h"
#include "core/log.h"
#include "core/placement.h"
#include "train/trainer.h"

namespace annulus {

// The start of a job that computes: places the ranks, settles what is open, and makes the device.
struct Start {
  Settled settled;
  Placement placement;
  std::vector<std::string> placements;  // of all ranks, as JSON
  std::unique_ptr<DeviceContext> device;
};

// Fills in `config`'s threads and shards. `kept`: those of the checkpoint that the run goes on
// from; a config that asks for others is an Error (usage). Collective; before any compute thread
// starts.
Start start_job(RunConfig& config, const std::optional<Settled>& kept, Communicator& comm,
                Log& log);

// What the run comes to, the same on every rank. `config` has been through start_job(). Error
// (usage). Collective.
RunPlan agree_on_plan(const RunConfig& config, const DataSets& data, Communicator& comm, Log& log);

}  // namespace annulus
