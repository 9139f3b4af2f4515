// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "io/json.h"

namespace annulus {

// Writes a text file so that its name never stands for half of it: written beside, synced, renamed
// over what is there, and the directory synced. Error (output) with the path; then what was there
// is unchanged.
void write_file_atomically(const std::string& path, const std::string& text);

// A file of JSON lines that grows: each object is one line, handed to the system in one write. What
// a killed run left of a last line is cut off when the file is opened again.
class MetricsFile {
 public:
  // Opens for appending; made where it is not there. Error (output).
  explicit MetricsFile(std::string path);
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

  // Error (output).
  void append(const JsonObject& line);

 private:
  std::string path_;
  int file_ = -1;
};

}  // namespace annulus
