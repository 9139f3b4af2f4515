// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "core/trace.h"
#include "train/session.h"

namespace annulus {

// Records what the threads of this rank do in some steps of a run.
class StepProfile {
 public:
  // Steps [first, first + count), counted from the start of this process. The session must outlive
  // it.
  StepProfile(Session& session, std::int64_t first, std::int64_t count);
  ~StepProfile() { stop(); }
  StepProfile(const StepProfile&) = delete;
  StepProfile& operator=(const StepProfile&) = delete;

  // To be called before each step, with the number of steps done. True when recording has just
  // ended.
  bool before_step(std::int64_t done);
  // Ends recording, where it is on: also true then.
  bool stop();

  const Trace& trace() const { return trace_; }
  // Writes the trace to DIRECTORY/rank_NNNN.json. Error (output).
  void write(const std::string& directory) const;

 private:
  Session& session_;
  std::int64_t first_;
  std::int64_t end_;
  Trace trace_;
  bool on_ = false;
};

}  // namespace annulus
