// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "comm/communicator.h"

namespace annulus {

// The ways to take a decision that leads to a collective, so that no rank goes a way of its own.
// All are collective.

// Every rank does `work`. If it throws on any rank, all ranks throw the error of the lowest such
// rank (as to_error gives it), with its kind, rank and host, as an agreed one.
void agree(Communicator& comm, const std::function<void()>& work);

// Rank 0 alone does `work`; all ranks get its text, or throw its error.
std::string agree_on_text(Communicator& comm, const std::function<std::string()>& work);

// The largest of the ranks' values.
std::int64_t agree_on_largest(Communicator& comm, std::int64_t value);

// The texts of all ranks, in the order of ranks.
std::vector<std::string> gather_texts(Communicator& comm, const std::string& mine);

}  // namespace annulus
