// SPDX-License-Identifier: Apache-2.0
#include "core/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "core/error.h"

namespace annulus {
namespace {

spdlog::level::level_enum to_spdlog(Log::Level level) {
  switch (level) {
    case Log::Level::debug:
      return spdlog::level::debug;
    case Log::Level::info:
      return spdlog::level::info;
    case Log::Level::warning:
      return spdlog::level::warn;
    case Log::Level::error:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

// A name of a file or a library's message may hold what moves the cursor or colours the terminal.
std::string printable(std::string line) {
  for (char& c : line) {
    const auto code = static_cast<unsigned char>(c);
    if ((code < 0x20 && c != '\n' && c != '\t') || code == 0x7F) c = '?';
  }
  return line;
}

}  // namespace

struct Log::Sinks {
  std::unique_ptr<spdlog::logger> terminal;
  std::unique_ptr<spdlog::logger> file;
};

Log::Log(int rank, Level terminal_level) : sinks_(std::make_unique<Sinks>()), rank_(rank) {
  if (rank_ > 0) return;
  // No colours and no time: the terminal is read by people and by scripts alike.
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  sinks_->terminal = std::make_unique<spdlog::logger>("terminal", sink);
  sinks_->terminal->set_pattern("%v");
  sinks_->terminal->set_level(to_spdlog(terminal_level));
}

Log::~Log() = default;

void Log::open_file(const std::string& directory) {
  const std::string path = fmt::format("{}/rank_{:04}.log", directory, rank_ < 0 ? 0 : rank_);
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
    sinks_->file = std::make_unique<spdlog::logger>("file", sink);
  } catch (const spdlog::spdlog_ex& error) {
    fail(ErrorKind::output, "the log cannot be written: {}", error.what());
  }
  sinks_->file->set_pattern("%Y-%m-%d %H:%M:%S.%e %l %v");
  sinks_->file->set_level(spdlog::level::debug);
  sinks_->file->flush_on(spdlog::level::info);
}

void Log::write(Level level, const std::string& line) {
  const std::string text = printable(line);
  if (sinks_->terminal) {
    sinks_->terminal->log(to_spdlog(level),
                          level == Level::warning ? "annulus: warning: " + text : text);
  }
  if (sinks_->file) sinks_->file->log(to_spdlog(level), text);
}

void Log::file_only(const std::string& line) {
  if (sinks_->file) sinks_->file->info(printable(line));
}

}  // namespace annulus
