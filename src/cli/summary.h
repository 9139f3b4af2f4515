// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/start.h"
#include "comm/communicator.h"
#include "core/error.h"
#include "io/json.h"
#include "train/trainer.h"

namespace annulus {

// The loss and metrics of an evaluation: {"samples": 360, "loss": 0.1, "top1": 0.97}.
JsonObject to_json(const Metrics& metrics);

// summary.json of a run that came to its end, completed or stopped. Collective.
std::string summary_of(const TrainResult& result, const Start& start, Communicator& comm);

// summary.json of a run that ended with an error.
std::string summary_of(const Error& error);

}  // namespace annulus
