// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"

#include <cerrno>
#include <new>
#include <system_error>

namespace annulus {

const char* name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::bug:
      return "internal error";
    case ErrorKind::usage:
      return "config";
    case ErrorKind::data:
      return "data";
    case ErrorKind::output:
      return "output";
    case ErrorKind::resource:
      return "resources";
    case ErrorKind::numeric:
      return "numeric";
    case ErrorKind::peer:
      return "peer";
    case ErrorKind::stopped:
      return "stopped";
  }
  return "error";
}

std::string printable(std::string_view text) {
  std::string line(text);
  for (char& c : line) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x20 || code == 0x7F) c = '?';
  }
  return line;
}

std::string to_string(const Location& where) {
  std::string file = printable(where.file);
  if (where.line == 0) return file;
  if (where.column == 0) return fmt::format("{}:{}", file, where.line);
  return fmt::format("{}:{}:{}", file, where.line, where.column);
}

Error::Error(ErrorKind kind, std::string message)
    : std::runtime_error(""), kind_(kind), message_(std::move(message)) {
  compose();
}

Error& Error::values(std::string expected, std::string found) {
  expected_ = std::move(expected);
  found_ = std::move(found);
  compose();
  return *this;
}

Error& Error::at(Location where) {
  where_ = std::move(where);
  compose();
  return *this;
}

Error& Error::on(int rank, std::string host) {
  if (rank_ >= 0) return *this;
  rank_ = rank;
  host_ = std::move(host);
  compose();
  return *this;
}

Error& Error::agreed(int rank, std::string host) {
  agreed_ = true;
  return on(rank, std::move(host));
}

std::string Error::text() const {
  std::string text;
  if (!where_.file.empty()) text += to_string(where_) + ": ";
  text += message_;
  if (!expected_.empty() || !found_.empty()) {
    text += fmt::format(": expected {}, found {}", expected_, found_);
  }
  return text;
}

void Error::compose() {
  text_ = rank_ < 0 ? text() : fmt::format("[rank {} on {}] {}", rank_, host_, text());
}

Error to_error(const std::exception& exception) {
  if (const auto* ours = dynamic_cast<const Error*>(&exception)) return *ours;
  if (dynamic_cast<const std::bad_alloc*>(&exception) != nullptr) {
    return {ErrorKind::resource, "no memory is left for this rank"};
  }
  return {ErrorKind::bug, exception.what()};
}

std::string with_errno(const std::string& what) {
  const int code = errno;
  return fmt::format("{}: {} (errno {})", what, std::generic_category().message(code), code);
}

}  // namespace annulus
