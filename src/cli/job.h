// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "comm/communicator.h"
#include "core/error.h"
#include "core/progress.h"

namespace annulus {

// The rank that a launcher gave this process; -1 where none did. For messages before the job is
// joined.
int launcher_rank();

// Prints an error on standard error as whole lines.
void print_error(const Error& error);

// Joins the job and runs `body` on every rank. An error that all ranks agreed on (it has the rank
// it comes from) is printed by rank 0, and all ranks return its code together; any other is printed
// by the rank that has it, which then ends the job.
int run_job(const std::function<int(Communicator&, Progress&)>& body);

}  // namespace annulus
