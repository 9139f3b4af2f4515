// SPDX-License-Identifier: Apache-2.0
#include "core/log.h"

#include <atomic>
#include <cstdio>
#include <utility>
#include <vector>

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

// Says once, whatever the rank, that the file takes no more. `message` is spdlog's, which ends with
// the system's words.
class Complaint {
 public:
  Complaint(std::string path, int rank) : path_(std::move(path)), rank_(rank) {}

  void operator()(const std::string& message) {
    if (said_.exchange(true)) return;
    const std::size_t colon = message.rfind(": ");
    const std::string line =
        fmt::format("annulus: warning: {}cannot write log '{}': {}; the run goes on without\n",
                    rank_ > 0 ? fmt::format("[rank {}] ", rank_) : "", printable(path_),
                    colon == std::string::npos ? message : message.substr(colon + 2));
    std::fwrite(line.data(), 1, line.size(), stderr);
  }

 private:
  std::string path_;
  int rank_;
  std::atomic<bool> said_ = false;
};

}  // namespace

struct Log::Sinks {
  std::unique_ptr<spdlog::logger> terminal;
  std::unique_ptr<spdlog::logger> file;
  // What came before there was a file: a run makes its directory when its start has gone well.
  std::vector<std::pair<Log::Level, std::string>> early;
};

Log::Log(int rank, Level terminal_level) : sinks_(std::make_unique<Sinks>()), rank_(rank) {
  if (rank_ > 0) return;
  // No colours and no time: the terminal is read by people and by scripts alike.
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  sinks_->terminal = std::make_unique<spdlog::logger>("terminal", sink);
  sinks_->terminal->set_pattern("%v");
  sinks_->terminal->set_error_handler([](const std::string&) {});  // there is nowhere to tell it
  sinks_->terminal->set_level(to_spdlog(terminal_level));
}

Log::~Log() = default;

void Log::open_file(const std::string& directory) {
  const std::string path = fmt::format("{}/rank_{:04}.log", directory, rank_ < 0 ? 0 : rank_);
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
    sinks_->file = std::make_unique<spdlog::logger>("file", sink);
  } catch (const spdlog::spdlog_ex& error) {
    const std::string message = error.what();
    fail(ErrorKind::output, "cannot write log '{}': {}", path,
         message.substr(message.rfind(": ") + 2));
  }
  const auto complaint = std::make_shared<Complaint>(path, rank_);
  sinks_->file->set_error_handler([complaint](const std::string& text) { (*complaint)(text); });
  sinks_->file->set_pattern("%Y-%m-%d %H:%M:%S.%e %l %v");
  sinks_->file->set_level(spdlog::level::debug);
  sinks_->file->flush_on(spdlog::level::info);
  for (const auto& [level, line] : sinks_->early) sinks_->file->log(to_spdlog(level), line);
  sinks_->early.clear();
}

void Log::write(Level level, const std::string& line) {
  const std::string text = printable(line);
  if (sinks_->terminal) {
    sinks_->terminal->log(to_spdlog(level),
                          level == Level::warning ? "annulus: warning: " + text : text);
  }
  if (sinks_->file) {
    sinks_->file->log(to_spdlog(level), text);
  } else {
    sinks_->early.emplace_back(level, text);
  }
}

void Log::error_in_file(const std::string& line) {
  if (sinks_->file) sinks_->file->error(printable(line));
}

void Log::file_only(const std::string& line) {
  if (sinks_->file) sinks_->file->info(printable(line));
}

}  // namespace annulus
