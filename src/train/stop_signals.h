// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace annulus {

// Turns SIGTERM, SIGINT, SIGUSR1 and SIGUSR2 into a wish to stop that is asked for between steps.
// Made before any other thread, so that all threads have the signals blocked and none is ever
// interrupted.
class StopSignals {
 public:
  StopSignals();   // blocks the signals; Error (resource)
  ~StopSignals();  // restores the mask that was there before
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Whether one of the signals has come since the start; cheap.
  bool requested();
  // The name of the first one, "SIGTERM"; "" while there is none.
  const char* name() const { return name_; }

 private:
  int descriptor_ = -1;
  const char* name_ = "";
};

}  // namespace annulus
