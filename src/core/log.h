// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <fmt/core.h>

namespace annulus {

// The log of one rank: lines go to `log/rank_NNNN.log` of the run directory once there is one, and,
// from rank 0 alone, to the terminal (standard error). Warnings of other ranks reach the terminal
// only where they are sent as errors. Usable from any thread; whole lines only. Where the file
// takes no more, one warning on the terminal says so and the work goes on.
class Log {
 public:
  enum class Level { debug, info, warning, error };

  // `rank` -1 means that ranks are not known yet: such a log prints like rank 0.
  explicit Log(int rank, Level terminal_level = Level::info);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // From now on every line also goes to DIR/rank_NNNN.log, those so far first; the directory must
  // exist. Error (output).
  void open_file(const std::string& directory);

  // A line of the file and, on rank 0, of the terminal.
  template <class... Args>
  void info(fmt::format_string<Args...> format, Args&&... args) {
    write(Level::info, fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  void warning(fmt::format_string<Args...> format, Args&&... args) {
    write(Level::warning, fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  void debug(fmt::format_string<Args...> format, Args&&... args) {
    write(Level::debug, fmt::format(format, std::forward<Args>(args)...));
  }
  // Lines that only the file gets: progress that the terminal shows in another way, and an error
  // that is printed at the end of the program.
  void file_only(const std::string& line);
  void error_in_file(const std::string& line);

 private:
  struct Sinks;
  void write(Level level, const std::string& line);

  std::unique_ptr<Sinks> sinks_;
  int rank_;
};

}  // namespace annulus
