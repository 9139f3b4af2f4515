// SPDX-License-Identifier: Apache-2.0
#include "core/placement.h"

#include <sched.h>

#include "core/cpu/parallel.h"
#include "core/error.h"

namespace annulus {

std::vector<int> allowed_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) {
    fail(ErrorKind::resource, "{}", with_errno("the allowed processors cannot be read"));
  }
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &mask)) cores.push_back(core);
  }
  return cores;
}

void apply(const Placement& placement) {
  if (!placement.cores.empty()) {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    for (int core : placement.cores) CPU_SET(core, &mask);
    if (sched_setaffinity(0, sizeof mask, &mask) != 0) {
      fail(ErrorKind::resource, "{}", with_errno("this rank cannot be bound to its cores"));
    }
  }
  set_parallel_threads(placement.threads);
}

}  // namespace annulus
