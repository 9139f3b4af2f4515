// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace annulus {

// What the environment says about who started this process.
struct Launch {
  bool present = false;  // a launcher started it as one rank of a job
  int ranks = 0;         // of the job; 0: not said
  std::string variable;  // that says so, for messages
};

using Environment = std::function<const char*(const char* name)>;

// Open MPI's and PMIx's mpirun, the mpiexec of MPICH and its kin, and srun. A batch script of Slurm
// is no rank.
Launch detect_launch(const Environment& environment);

// ANNULUS_NODES: into how many pretended nodes the ranks of one machine are split; 1 by default.
// Error (usage).
int pretended_nodes(const Environment& environment);

}  // namespace annulus
