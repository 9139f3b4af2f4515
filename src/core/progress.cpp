// SPDX-License-Identifier: Apache-2.0
#include "core/progress.h"

namespace annulus {

const char* name(Phase phase) {
  switch (phase) {
    case Phase::join:
      return "join";
    case Phase::segments:
      return "segments";
    case Phase::start:
      return "start";
    case Phase::scan:
      return "scan";
    case Phase::model:
      return "model";
    case Phase::reducer:
      return "reducer";
    case Phase::windows:
      return "windows";
    case Phase::load:
      return "load";
    case Phase::train:
      return "train";
    case Phase::evaluate:
      return "evaluate";
    case Phase::save:
      return "save";
    case Phase::finish:
      return "finish";
  }
  return "?";
}

std::optional<Phase> phase_named(std::string_view wanted) {
  for (int number = 0; number <= static_cast<int>(Phase::finish); ++number) {
    const auto phase = static_cast<Phase>(number);
    if (wanted == name(phase)) return phase;
  }
  return std::nullopt;
}

}  // namespace annulus
