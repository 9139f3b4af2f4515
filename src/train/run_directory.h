// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace annulus {

// The folder that a run writes. Made by rank 0 alone.
class RunDirectory {
 public:
  // A new one at `path`, or at runs/NAME-YYYYMMDD-HHMMSS (with -2, -3 ... where that is taken) for
  // an empty path. Error (output) where `path` exists and holds a run.
  static std::string create(const std::string& path, const std::string& name);
  // An existing one, to go on in. Error (output) where there is none.
  static std::string open(const std::string& path);

  explicit RunDirectory(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }
  std::string config() const { return path_ + "/config.toml"; }
  std::string metrics() const { return path_ + "/metrics.jsonl"; }
  std::string logs() const { return path_ + "/log"; }
  std::string checkpoints() const { return path_ + "/checkpoints"; }
  std::string placement() const { return path_ + "/placement.json"; }
  std::string summary() const { return path_ + "/summary.json"; }

 private:
  std::string path_;
};

}  // namespace annulus
