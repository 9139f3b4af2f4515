// SPDX-License-Identifier: Apache-2.0
#include "train/progress_line.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <fmt/core.h>
#include <unistd.h>

namespace annulus {
namespace {

constexpr std::chrono::milliseconds terminal_interval{100};
constexpr std::chrono::seconds file_interval{5};

std::string duration_text(double seconds) {
  const auto whole = std::llround(seconds);
  if (whole >= 3600) return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
  if (whole >= 60) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}s", whole);
}

}  // namespace

ProgressLine::ProgressLine(int rank, std::int64_t total_updates)
    : enabled_(rank == 0), terminal_(isatty(STDERR_FILENO) == 1), total_(total_updates) {}

ProgressLine::~ProgressLine() {
  clear();
}

bool ProgressLine::due(bool logged) const {
  if (!enabled_) return false;
  if (terminal_) return Clock::now() - last_ >= terminal_interval;
  return logged && Clock::now() - last_ >= file_interval;
}

void ProgressLine::show(const std::string& text) {
  if (!enabled_) return;
  last_ = Clock::now();
  if (terminal_) {
    std::fputs(fmt::format("\r{}\x1b[K", text).c_str(), stderr);
    open_ = true;
  } else {
    std::fputs((text + '\n').c_str(), stderr);
  }
  std::fflush(stderr);
}

void ProgressLine::clear() {
  if (!open_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  open_ = false;
}

std::string ProgressLine::remaining(std::int64_t done_updates) const {
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const auto done = static_cast<double>(std::max<std::int64_t>(done_updates, 1));
  return duration_text(seconds / done *
                       static_cast<double>(std::max<std::int64_t>(total_ - done_updates, 0)));
}

}  // namespace annulus
