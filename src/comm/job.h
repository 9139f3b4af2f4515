// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "comm/communicator.h"
#include "core/error.h"
#include "core/progress.h"

namespace annulus {

// Prints an error of this rank.
using Report = std::function<void(const Error&)>;

// The ranks of the job that the launcher started, or a single rank where no launcher did (then no
// MPI is touched). Starts the communication thread, which initialises MPI, makes every MPI call,
// and finalises it when the object dies. `progress` is where this rank, its phase and the current
// bucket are written; it must outlive the result. comm/mpi/job.cpp.
//
// Error (resource) on all ranks, as an agreed one, where the launcher's number of ranks is not
// MPI's: N jobs of one rank. Where one rank cannot join the others, there is nothing yet to tell
// them by: that rank calls `report`, ends all of them with its exit code, and does not return.
std::unique_ptr<Communicator> join_job(Progress& progress, const Report& report);

// The MPI library: "Open MPI 4.1.4". May be asked for at any time, in a job or not.
std::string mpi_version();

// `ranks` threads as ranks of one job, for tests: calls body(communicator) on each, on its own
// thread, and returns when all have. `nodes` splits them into as many pretended nodes (by
// share_of), which then share no gradient memory. A rank that throws ends the job: the others'
// waits throw Error (peer). The error of the lowest rank is thrown here, lost peers last. abort()
// throws. comm/local/threads.cpp.
void run_as_threads(int ranks, int nodes, const std::function<void(Communicator&)>& body);

}  // namespace annulus
