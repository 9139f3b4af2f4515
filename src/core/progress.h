// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace annulus {

// What a rank is doing. Slow phases that are no fault (start, scan, evaluate, save, load) are apart
// from training, so that nobody takes them for a hang.
enum class Phase : std::uint8_t { start, scan, load, train, evaluate, save, finish };

const char* name(Phase phase);

// Where a rank is, for messages and for whoever watches it. Written by the trainer's thread, read
// by any other; each field alone is consistent.
struct Progress {
  std::atomic<Phase> phase{Phase::start};
  std::atomic<std::int64_t> iteration{0};
  std::atomic<int> bucket{-1};  // the gradient bucket that is being reduced; -1: none
};

}  // namespace annulus
