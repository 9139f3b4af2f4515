// SPDX-License-Identifier: Apache-2.0
#include "train/run_lock.h"

#include <array>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/error.h"

namespace annulus {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string contents(int file) {
  std::array<char, 512> text{};
  const ssize_t count = pread(file, text.data(), text.size(), 0);
  return {text.data(), static_cast<std::size_t>(count > 0 ? count : 0)};
}

// For whoever finds the lock taken. That it cannot be written is no reason not to run.
void write_owner(int file) {
  const std::string owner = fmt::format("process {} on {}", getpid(), host_name());
  if (ftruncate(file, 0) != 0) return;
  if (pwrite(file, owner.data(), owner.size(), 0) < 0) return;
}

}  // namespace

RunLock::RunLock(const std::string& directory) {
  const std::string path = directory + '/' + file_name();
  file_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0) fail(ErrorKind::output, "{}", with_errno("cannot open '" + path + "'"));
  held_ = flock(file_, LOCK_EX | LOCK_NB) == 0;
  if (!held_ && errno == EWOULDBLOCK) {
    const std::string owner = contents(file_);
    close(std::exchange(file_, -1));
    fail(ErrorKind::output, "{} is in use by {}; wait for its end, or choose another --run-dir",
         directory, owner.empty() ? "another process" : owner);
  }
  if (held_) write_owner(file_);
}

RunLock::RunLock(RunLock&& other) noexcept
    : file_(std::exchange(other.file_, -1)), held_(other.held_) {}

RunLock::~RunLock() {
  if (file_ >= 0) close(file_);
}

}  // namespace annulus
