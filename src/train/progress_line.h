// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace annulus {

// How far a run is, for a person: one line on standard error that rewrites itself on a terminal,
// and a plain line now and then where standard error is a file. Silent on ranks other than 0.
class ProgressLine {
 public:
  ProgressLine(int rank, std::int64_t total_updates);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Whether it is time for a new line: only then is the text worth making.
  bool due(bool logged) const;
  void show(const std::string& text);
  // Ends a rewritten line, so that other output starts on a line of its own.
  void clear();

  // "1h02m" for the updates that remain of the total, at the pace of `done_updates` since the
  // start.
  std::string remaining(std::int64_t done_updates) const;

 private:
  using Clock = std::chrono::steady_clock;
  bool enabled_;
  bool terminal_;
  std::int64_t total_;
  bool open_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_;
};

}  // namespace annulus
