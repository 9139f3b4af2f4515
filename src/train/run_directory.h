// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "train/run_lock.h"

namespace annulus {

// The folder that a run writes. Made by rank 0 alone; the others know its path.
class RunDirectory {
 public:
  // One that rank 0 has made or opened, with its lock.
  struct Claimed;
  // A new one at `path`, or at runs/NAME-YYYYMMDD-HHMMSS (with -2, -3 ... where that is taken) for
  // an empty path. Error (output) where `path` exists and holds anything, or is in use.
  static Claimed create(const std::string& path, const std::string& name);
  // An existing one, to go on in. Error (output) where there is none, or it is in use.
  static Claimed open(const std::string& path);
  // The Error that create() would throw for what `path` holds now. Nothing is written.
  static void refuse_used(const std::string& path);

  explicit RunDirectory(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }
  std::string config() const { return path_ + "/config.toml"; }
  std::string metrics() const { return path_ + "/metrics.jsonl"; }
  std::string logs() const { return path_ + "/log"; }
  std::string checkpoints() const { return path_ + "/checkpoints"; }
  std::string traces() const { return path_ + "/trace"; }
  std::string placement() const { return path_ + "/placement.json"; }
  std::string summary() const { return path_ + "/summary.json"; }

 private:
  std::string path_;
};

struct RunDirectory::Claimed {
  std::string path;  // absolute
  RunLock lock;
};

}  // namespace annulus
