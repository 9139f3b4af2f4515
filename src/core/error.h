// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace annulus {

// What went wrong, as the exit code of the process (docs/troubleshooting.md lists them).
enum class ErrorKind : int {
  bug = 1,       // an invariant of ours does not hold
  usage = 2,     // command line or config
  data = 3,      // a data set
  output = 4,    // a checkpoint or another file that we write
  resource = 5,  // memory, devices, placement, launch
  numeric = 6,   // diverged, not finite, replicas differ
  peer = 7,      // another rank is lost or too late
  stopped = 75,  // stopped by request after saving: run again to go on
};

// The word that stands before the message: "config", "data", ...
const char* name(ErrorKind kind);

// A place in a config file; line and column count from 1, 0 means unknown.
struct Location {
  std::string file;
  int line = 0;
  int column = 0;
};

// "file:line:column", shorter where the line is unknown.
std::string to_string(const Location& where);

// The one exception of the project. It is thrown where the fault is seen, gets rank and host on its
// way up, and is printed once, in main, which returns `exit_code()`.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string message);

  // Both values of a mismatch; they are appended as "expected ..., found ...".
  Error& values(std::string expected, std::string found);
  // The place in a config that the fault comes from; it is printed before the message.
  Error& at(Location where);
  // The rank where it happened. The first call wins: an error that travels keeps its origin.
  Error& on(int rank, std::string host);
  // The same for an error that all ranks throw, whichever it comes from: one line of one of them is
  // enough, and they can end together.
  Error& agreed(int rank, std::string host);

  ErrorKind kind() const { return kind_; }
  int exit_code() const { return static_cast<int>(kind_); }
  int rank() const { return rank_; }  // -1: not set
  const std::string& host() const { return host_; }
  bool is_agreed() const { return agreed_; }
  const std::string& message() const { return message_; }
  const std::string& expected() const { return expected_; }
  const std::string& found() const { return found_; }
  const Location& where() const { return where_; }

  // Without rank and host: "exp.toml:7:1: message: expected a, found b".
  std::string text() const;
  // All of it: "[rank 2 on h0] exp.toml:7:1: message: expected a, found b".
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  void compose();

  ErrorKind kind_;
  std::string message_;
  std::string expected_;
  std::string found_;
  Location where_;
  int rank_ = -1;
  std::string host_;
  bool agreed_ = false;
  std::string text_;
};

// Any exception as an Error: lack of memory is of kind resource, what is not ours of kind bug.
Error to_error(const std::exception& exception);

// Throws an Error with a formatted message.
template <class... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(kind, fmt::format(format, std::forward<Args>(args)...));
}

// Throws an Error of kind `kind` unless the condition holds.
template <class... Args>
void require(bool condition, ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) fail(kind, format, std::forward<Args>(args)...);
}

// An invariant of ours: throws kind `bug` with both values unless they are equal.
template <class A, class B>
void require_equal(const A& expected, const B& found, const char* what) {
  if (expected == found) return;
  throw Error(ErrorKind::bug, what).values(fmt::format("{}", expected), fmt::format("{}", found));
}

// Text that a name of a file, a library or a user gave, fit for one line of a terminal: each
// control character, which could end the line or move the cursor, becomes '?'.
std::string printable(std::string_view text);

// "what: No such file or directory (errno 2)" for the current value of errno.
std::string with_errno(const std::string& what);

}  // namespace annulus
