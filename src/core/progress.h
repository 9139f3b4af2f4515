// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "core/fault.h"
#include "core/phase.h"
#include "core/trace.h"

namespace annulus {

// Where a rank is, for messages and for whoever watches it, and the faults that wait for it there.
// Written by the threads of the rank that do its work, one at a time, read by any other; each field
// alone is consistent.
struct Progress {
  std::atomic<int> rank{0};  // of the job; the launcher's until the ranks know each other
  std::atomic<Phase> phase{Phase::join};
  std::atomic<std::int64_t> iteration{0};
  std::atomic<int> bucket{-1};         // the gradient bucket that is being reduced; -1: none
  Faults faults;                       // set before any other thread looks
  std::atomic<Trace*> trace{nullptr};  // where ranges of time are recorded; null: nowhere

  // The rank is in `next` from now on. Does what is planned to go wrong there.
  void enter(Phase next) {
    phase = next;
    faults.at_phase(rank, next);
  }
};

}  // namespace annulus
