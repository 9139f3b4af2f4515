// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace annulus {

// What one rank may use of its node, decided once before any thread pool starts.
struct Placement {
  int local_rank = 0;
  int local_size = 1;
  std::vector<int> cores;  // processor numbers; empty: as inherited
  int threads = 1;         // compute threads
  int gpu = -1;            // index in PCI bus order; -1: none
  std::string nic;         // exact name; empty: the library's choice
};

// The processors that this process may run on, in increasing order (its affinity mask).
std::vector<int> allowed_cores();

// Binds the calling thread, and so every thread it starts later, to `placement.cores`, and sets the
// size of the compute thread pool. Call it before the first parallel region. Error (resource).
void apply(const Placement& placement);

}  // namespace annulus
