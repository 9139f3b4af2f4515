// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace annulus {

// What a rank is doing, in the order in which a run comes to it. Slow phases that are no fault (all
// but train) are apart from training, so that nobody takes them for a hang.
enum class Phase : std::uint8_t {
  join,      // finds the other ranks
  segments,  // shares memory with its neighbours for the first time
  start,     // config, run directory, placement
  scan,      // opens the data
  model,     // makes the network ready
  reducer,   // plans the sums of gradients and reserves their memory
  windows,   // shares that memory with its neighbours
  load,
  train,
  evaluate,
  save,
  finish,
};

const char* name(Phase phase);
// The phase of that name; nothing where there is none.
std::optional<Phase> phase_named(std::string_view name);

}  // namespace annulus
