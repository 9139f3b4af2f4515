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

// Joins the job and runs `body` on every rank; `command` is what the ranks were started for, and
// must be the same on all. Returns the exit code.
//
// An error that all ranks share (Error::agreed) is printed by rank 0, and all end together. A rank
// that fails alone prints its error at once and ends the job; the others, who wait for it, say
// nothing. Of several that lost the same rank, one a node speaks.
int run_job(const char* command, const std::function<int(Communicator&, Progress&)>& body);

}  // namespace annulus
