// SPDX-License-Identifier: Apache-2.0
#include "io/files.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/error.h"

namespace annulus {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_with_errno(const std::string& what) {
  fail(ErrorKind::output, "{}", with_errno(what));
}

[[noreturn]] void fail_writing(const std::string& path, std::size_t bytes) {
  const int code = errno;
  fail(ErrorKind::output, "cannot write '{}': {}", path,
       why_not_written(code, static_cast<std::int64_t>(bytes), free_bytes(path)));
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

}  // namespace

void write_all(int file, const std::string& text, const std::string& path) {
  const char* at = text.data();
  std::size_t left = text.size();
  while (left > 0) {
    const ssize_t written = ::write(file, at, left);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_writing(path, text.size());
    at += written;
    left -= static_cast<std::size_t>(written);
  }
}

void write_new_file(const std::string& path, const std::string& text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) fail_with_errno("cannot make '" + path + "'");
  try {
    write_all(file, text, path);
    if (::fsync(file) != 0) fail_writing(path, text.size());
  } catch (...) {
    ::close(file);
    throw;
  }
  if (::close(file) != 0) fail_with_errno("cannot close '" + path + "'");
}

std::string read_file(const std::string& path) {
  require_regular_file(path, ErrorKind::output);
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) fail_with_errno("cannot read '" + path + "'");
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) fail_with_errno("cannot read '" + path + "'");
  return text;
}

std::int64_t file_bytes(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) fail_with_errno("cannot read '" + path + "'");
  return status.st_size;
}

void require_regular_file(const std::string& path, ErrorKind kind, const std::string& what) {
  const std::string title = fmt::format("{}{}'{}'", what, what.empty() ? "" : " ", path);
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) fail(kind, "{}", with_errno("cannot read " + title));
  require(S_ISREG(status.st_mode), kind, "{} is not a regular file", title);
}

bool path_exists(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  fail_with_errno("cannot look at '" + path + "'");
}

void make_directories(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  require(!error, ErrorKind::output, "cannot make directory '{}': {}", path, error.message());
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
    fail_with_errno("cannot give '" + to + "' its name");
  }
}

void exchange_paths(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) return;
  if (errno != EINVAL && errno != ENOSYS) {
    fail_with_errno("cannot replace '" + to + "'");
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
  constexpr std::size_t kept = 200;  // of a name, which has at most 255 bytes with what is added
  const fs::path whole(path);
  const std::string name = whole.filename().string().substr(0, kept);
  return (whole.parent_path() / fmt::format(".{}.tmp_{}", name, ::getpid())).string();
}

std::optional<std::int64_t> free_bytes(const std::string& path) {
  struct statvfs status {};
  if (::statvfs(parent_of(path).c_str(), &status) != 0 || status.f_blocks == 0) return std::nullopt;
  const auto blocks = ::geteuid() == 0 ? status.f_bfree : status.f_bavail;
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(blocks, status.f_frsize, &bytes)) return std::nullopt;
  return bytes;
}

std::string why_not_written(int code, std::int64_t wanted, std::optional<std::int64_t> free) {
  std::string text = fmt::format("{} (errno {})", std::generic_category().message(code), code);
  if (code != ENOSPC && code != EDQUOT) return text;
  if (wanted > 0) text += fmt::format("; it needs {} bytes", wanted);
  if (wanted > 0 && free && code == ENOSPC) text += fmt::format(", {} were free", *free);
  return text + "; make room there";
}

void name_errors_after(const std::string& path, const std::string& temporary,
                       const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    Error named(error.kind(), replaced(error.message(), temporary, path));
    named.values(replaced(error.expected(), temporary, path),
                 replaced(error.found(), temporary, path));
    throw Error(named);
  }
}

TemporaryPath::TemporaryPath(std::string path) : path_(std::move(path)) {}

TemporaryPath::~TemporaryPath() {
  if (!path_.empty()) remove_quietly(path_);
}

}  // namespace annulus
