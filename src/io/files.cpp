// SPDX-License-Identifier: Apache-2.0
#include "io/files.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include "core/error.h"

namespace annulus {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_with_errno(const std::string& what) {
  fail(ErrorKind::output, "{}", with_errno(what));
}

void write_all(int file, const std::string& text, const std::string& path) {
  const char* at = text.data();
  std::size_t left = text.size();
  while (left > 0) {
    const ssize_t written = ::write(file, at, left);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_with_errno("cannot write '" + path + "'");
    at += written;
    left -= static_cast<std::size_t>(written);
  }
}

}  // namespace

void write_new_file(const std::string& path, const std::string& text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) fail_with_errno("cannot make '" + path + "'");
  try {
    write_all(file, text, path);
    if (::fsync(file) != 0) fail_with_errno("cannot sync '" + path + "'");
  } catch (...) {
    ::close(file);
    throw;
  }
  if (::close(file) != 0) fail_with_errno("cannot close '" + path + "'");
}

std::string read_file(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) fail_with_errno("cannot read '" + path + "'");
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) fail_with_errno("cannot read '" + path + "'");
  return text;
}

std::int64_t file_bytes(const std::string& path) {
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  require(!error, ErrorKind::output, "cannot read '{}': {}", path, error.message());
  return static_cast<std::int64_t>(bytes);
}

void sync_path(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail_with_errno("cannot open '" + path + "' to sync it");
  const int status = ::fsync(file);
  const int code = errno;
  ::close(file);
  errno = code;
  // Some file systems cannot sync a directory and say so in this way.
  if (status != 0 && errno != EINVAL) fail_with_errno("cannot sync '" + path + "'");
}

void rename_path(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) {
    fail_with_errno("cannot rename '" + from + "' to '" + to + "'");
  }
}

void exchange_paths(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) return;
  if (errno != EINVAL && errno != ENOSYS) {
    fail_with_errno("cannot put '" + from + "' in the place of '" + to + "'");
  }
  const std::string aside = from + "_old";
  rename_path(to, aside);
  rename_path(from, to);
  rename_path(aside, from);
}

void remove_quietly(const std::string& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

std::string parent_of(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

std::string temporary_beside(const std::string& path) {
  const fs::path whole(path);
  return (whole.parent_path() / fmt::format(".{}.tmp_{}", whole.filename().string(), ::getpid()))
      .string();
}

TemporaryPath::TemporaryPath(std::string path) : path_(std::move(path)) {}

TemporaryPath::~TemporaryPath() {
  if (!path_.empty()) remove_quietly(path_);
}

}  // namespace annulus
