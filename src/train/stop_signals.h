// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

namespace annulus {

// Turns SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGUSR2 into a wish to stop that is asked for between
// steps; a SIGHUP that was ignored (nohup) stays so. SIGPIPE is ignored: whoever reads the terminal
// output may go, the run does not end with it. Made before any other thread, so that all threads
// have the signals blocked and none is ever interrupted.
class StopSignals {
 public:
  StopSignals();   // blocks the signals; Error (resource)
  ~StopSignals();  // restores what was there before
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Whether one of the signals has come since the start; cheap.
  bool requested();
  // The name of the first one, "SIGTERM"; "" while there is none.
  const char* name() const { return name_; }

 private:
  sigset_t mask_before_{};
  struct sigaction pipe_before_ {};
  int descriptor_ = -1;
  const char* name_ = "";
};

}  // namespace annulus
