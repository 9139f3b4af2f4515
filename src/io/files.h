// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/error.h"

namespace annulus {

// Small steps of which complete files are made. All throw Error (output) with path and errno.

// Writes a file that does not exist yet and syncs it.
void write_new_file(const std::string& path, const std::string& text);
// Hands all of a text to the system; `path` is what the open file is called.
void write_all(int file, const std::string& text, const std::string& path);
// The whole of a small regular file.
std::string read_file(const std::string& path);
std::int64_t file_bytes(const std::string& path);
// Error (`kind`) unless the path, links followed, stands for a regular file: a pipe would be waited
// for, a device may have no end. `what` goes before the path: "data file".
void require_regular_file(const std::string& path, ErrorKind kind, const std::string& what = "");
// Whether a path stands for anything, links followed. Error where that cannot be told.
bool path_exists(const std::string& path);
// Error with the reason where the directory and those above it cannot be made.
void make_directories(const std::string& path);
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

// The bytes that can still be written beside `path`; nothing where the file system does not say.
std::optional<std::int64_t> free_bytes(const std::string& path);
// "No space left on device (errno 28); it needs 200 bytes, 100 are free beside it: make room
// there": why a file of `wanted` bytes (0: not known) could not be written, `free` bytes before it.
std::string why_not_written(int code, std::int64_t wanted, std::optional<std::int64_t> free);

// Runs `work`, which writes `path` under the name `temporary`. In what it throws the temporary name
// is replaced by the one that the user knows.
void name_errors_after(const std::string& path, const std::string& temporary,
                       const std::function<void()>& work);

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
