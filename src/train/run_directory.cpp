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
  require(!error || fs::exists(path), ErrorKind::output, "{}: the directory cannot be made: {}",
          path.string(), error.message());
  return made;
}

void make_parts(const std::string& path) {
  make_directories(path + "/log");
  make_directories(path + "/checkpoints");
}

}  // namespace

std::string RunDirectory::create(const std::string& path, const std::string& name) {
  std::string chosen;
  if (path.empty()) {
    const std::string base = fmt::format("runs/{}-{}", name, timestamp());
    chosen = base;
    for (int i = 2; !claim(chosen); ++i) chosen = fmt::format("{}-{}", base, i);
  } else {
    chosen = path;
    // An empty directory may be given: it holds nothing that could be overwritten.
    if (!claim(chosen)) {
      std::error_code error;
      require(fs::is_directory(chosen, error) && fs::is_empty(chosen, error), ErrorKind::output,
              "{} exists and is never overwritten; choose another --run-dir, or add --resume to go "
              "on in it",
              chosen);
    }
  }
  chosen = fs::absolute(chosen).lexically_normal().string();
  make_parts(chosen);
  return chosen;
}

std::string RunDirectory::open(const std::string& path) {
  std::error_code error;
  require(fs::is_directory(path, error), ErrorKind::output, "{}: no such run directory", path);
  std::string absolute = fs::absolute(path).lexically_normal().string();
  make_parts(absolute);
  return absolute;
}

}  // namespace annulus
