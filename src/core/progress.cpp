// SPDX-License-Identifier: Apache-2.0
#include "core/progress.h"

namespace annulus {

const char* name(Phase phase) {
  switch (phase) {
    case Phase::start:
      return "start";
    case Phase::scan:
      return "scan";
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

}  // namespace annulus
