// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

namespace annulus::testing {

// What a finished process left.
struct Finished {
  int code = -1;  // exit status; 128 + signal where one ended it
  std::string out;
  std::string err;
};

// A process to start: the words of its command line, variables on top of ours, and where it runs.
struct Command {
  std::vector<std::string> words;
  std::map<std::string, std::string> environment = {};
  std::string directory = {};
  double timeout_s = 100;  // then it is killed, with its children, and a failure
};

// Runs a process to its end.
Finished run(const Command& command);

// The lines of a text.
std::vector<std::string> lines_of(const std::string& text);

// A directory of its own, removed with all that it holds.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + '/' + name; }

 private:
  std::string path_;
};

std::string read_text(const std::string& path);
void write_text(const std::string& path, const std::string& text);

}  // namespace annulus::testing
