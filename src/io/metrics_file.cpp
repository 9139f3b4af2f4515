// SPDX-License-Identifier: Apache-2.0
#include "io/metrics_file.h"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

#include "core/error.h"
#include "io/files.h"

namespace annulus {
namespace {

// The length of a file up to and with its last newline.
off_t length_of_whole_lines(int file, off_t length) {
  char byte = 0;
  while (length > 0 && (::pread(file, &byte, 1, length - 1) != 1 || byte != '\n')) --length;
  return length;
}

}  // namespace

void write_file_atomically(const std::string& path, const std::string& text) {
  TemporaryPath temporary(temporary_beside(path));
  remove_quietly(temporary.path());
  name_errors_after(path, temporary.path(), [&] {
    write_new_file(temporary.path(), text);
    rename_path(temporary.path(), path);
  });
  temporary.keep();
  sync_path(parent_of(path));
}

MetricsFile::MetricsFile(std::string path) : path_(std::move(path)) {
  if (path_exists(path_)) require_regular_file(path_, ErrorKind::output);
  file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) fail(ErrorKind::output, "{}", with_errno("cannot open '" + path_ + "'"));
  const off_t length = ::lseek(file_, 0, SEEK_END);
  const off_t whole = length_of_whole_lines(file_, length);
  if (whole < length && ::ftruncate(file_, whole) != 0) {
    const std::string message = with_errno("cannot cut the last line of '" + path_ + "'");
    ::close(file_);
    fail(ErrorKind::output, "{}", message);
  }
}

MetricsFile::~MetricsFile() {
  ::close(file_);
}

void MetricsFile::append(const JsonObject& line) {
  const std::string text = line.text() + '\n';
  const off_t before = ::lseek(file_, 0, SEEK_END);
  try {
    write_all(file_, text, path_);
  } catch (const Error&) {
    // Readers find whole lines only; what cannot be cut off now is when the file is opened again.
    [[maybe_unused]] const int status = ::ftruncate(file_, before);
    throw;
  }
}

}  // namespace annulus
