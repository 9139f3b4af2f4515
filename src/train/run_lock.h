// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace annulus {

// Keeps a run directory to one job at a time, for as long as the object lives: two jobs that write
// the same checkpoints would ruin both. A lock of the kernel on the file .lock in it, so that
// nothing is left to clear away after a kill. Held by rank 0 alone.
class RunLock {
 public:
  // Error (output) where another process holds it, with what that one wrote about itself. A file
  // system without locks gives none: held() is then false.
  explicit RunLock(const std::string& directory);
  ~RunLock();
  RunLock(RunLock&& other) noexcept;
  RunLock& operator=(RunLock&&) = delete;

  bool held() const { return held_; }
  // The name of its file in the directory.
  static const char* file_name() { return ".lock"; }

 private:
  int file_ = -1;
  bool held_ = false;
};

}  // namespace annulus
