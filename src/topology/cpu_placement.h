// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/placement.h"

namespace annulus {

struct CpuPlan {
  std::vector<Placement> ranks;       // one a local rank, in their order
  std::vector<std::string> warnings;  // one line each
};

// Divides the processors of a node among its local ranks. `masks` are the processors that each rank
// inherited (allowed_cores()), in the order of local ranks, as gathered from all of them; `threads`
// are the compute threads a rank, 0 for one a core. A pure function: every rank computes the same.
//
// Ranks with equal masks share one set: each gets its share_of() the cores, contiguous in their
// numbers, or, where there are more ranks than cores, all of them unpinned (`cores` empty) with one
// thread. A mask that no other rank has was made by the launcher for that rank and is kept whole.
// Masks that overlap without being equal are kept as they are, with a warning. More threads than
// cores are allowed, with a warning, so that the arithmetic of a larger machine can be kept. Error
// (resource): a rank without processors. Error (usage): negative `threads`, or more than 16 a core.
CpuPlan plan_cpu_placement(std::span<const std::vector<int>> masks, int threads);

}  // namespace annulus
