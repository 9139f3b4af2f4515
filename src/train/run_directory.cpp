// SPDX-License-Identifier: Apache-2.0
#include "train/run_directory.h"

#include <ctime>
#include <filesystem>
#include <system_error>

#include "core/error.h"

namespace annulus {
namespace {

namespace fs = std::filesystem;

std::string timestamp() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &parts);
  return text;
}

void make_directories(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  require(!error, ErrorKind::output, "{}: the directory cannot be made: {}", path.string(),
          error.message());
}

// Creates the last part of `path` itself; false where something has that name already. Two jobs
// that try the same name cannot both succeed.
bool claim(const fs::path& path) {
  std::error_code error;
  if (path.has_parent_path()) make_directories(path.parent_path());
  const bool made = fs::create_directory(path, error);
  std::error_code ignored;
  require(!error || fs::exists(path, ignored), ErrorKind::output,
          "{}: the directory cannot be made: {}", path.string(), error.message());
  return made;
}

// Whether a directory holds nothing that could be overwritten.
bool is_free(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return false;
  for (fs::directory_iterator entry(path, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (entry->path().filename() != RunLock::file_name()) return false;
  }
  return !error;
}

std::string absolute_text(const fs::path& path) {
  std::error_code error;
  std::string text = fs::absolute(path, error).lexically_normal().string();
  require(!error, ErrorKind::output, "{}: {}", path.string(), error.message());
  return text;
}

RunDirectory::Claimed with_parts(const fs::path& path, RunLock lock) {
  const std::string directory = absolute_text(path);
  make_directories(directory + "/log");
  make_directories(directory + "/checkpoints");
  return {directory, std::move(lock)};
}

}  // namespace

void RunDirectory::refuse_used(const std::string& path) {
  std::error_code error;
  const fs::file_type type = fs::symlink_status(path, error).type();
  if (path.empty() || type == fs::file_type::not_found) return;
  require(type != fs::file_type::none, ErrorKind::output, "{} cannot be looked at: {}", path,
          error.message());
  require(is_free(path), ErrorKind::output,
          "{} exists and is never overwritten; choose another --run-dir, or add --resume to go on "
          "in it",
          path);
}

RunDirectory::Claimed RunDirectory::create(const std::string& path, const std::string& name) {
  std::string chosen = path;
  if (path.empty()) {
    const std::string base = fmt::format("runs/{}-{}", name, timestamp());
    chosen = base;
    for (int i = 2; !claim(chosen); ++i) chosen = fmt::format("{}-{}", base, i);
  } else if (!claim(path)) {
    refuse_used(path);
  }
  RunLock lock(chosen);
  // Another job may have come before the lock was taken, into an empty directory that was given.
  refuse_used(chosen);
  return with_parts(chosen, std::move(lock));
}

RunDirectory::Claimed RunDirectory::open(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  require(fs::status_known(status), ErrorKind::output, "{} cannot be looked at: {}", path,
          error.message());
  require(fs::is_directory(status), ErrorKind::output, "{}: no such run directory", path);
  return with_parts(path, RunLock(path));
}

}  // namespace annulus
