// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace annulus {

// Small steps of which complete files are made. All throw Error (output) with path and errno.

// Writes a file that does not exist yet and syncs it.
void write_new_file(const std::string& path, const std::string& text);
// The whole of a small file.
std::string read_file(const std::string& path);
std::int64_t file_bytes(const std::string& path);
// Waits until a file, or the entries of a directory, are on the disk.
void sync_path(const std::string& path);
void rename_path(const std::string& from, const std::string& to);
// Swaps two names in one step, so that each always stands for something whole. Where the file
// system cannot do that, `to` goes away first.
void exchange_paths(const std::string& from, const std::string& to);
// Removes a file or a directory with its contents; what cannot be removed stays.
void remove_quietly(const std::string& path);
// The directory of a path, "." for a bare name.
std::string parent_of(const std::string& path);
// ".NAME.tmp_PID" beside `path`: where a file is written until it is complete.
std::string temporary_beside(const std::string& path);

// Removes a path at the end of the scope, unless kept.
class TemporaryPath {
 public:
  explicit TemporaryPath(std::string path);
  ~TemporaryPath();
  TemporaryPath(const TemporaryPath&) = delete;
  TemporaryPath& operator=(const TemporaryPath&) = delete;
  const std::string& path() const { return path_; }
  void keep() { path_.clear(); }

 private:
  std::string path_;
};

}  // namespace annulus
