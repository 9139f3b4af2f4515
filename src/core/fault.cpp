// SPDX-License-Identifier: Apache-2.0
#include "core/fault.h"

#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include <unistd.h>

namespace annulus {
namespace {

constexpr int default_code = 1;

[[noreturn]] void malformed(std::string_view text) {
  throw Error(ErrorKind::usage, "ANNULUS_FAULT")
      .values(
          "KIND@rank=R,iteration=I or KIND@rank=R,phase=P, with ';' between several, where KIND is "
          "throw:CODE, kill, signal:N or slow:MS",
          fmt::format("'{}'", text));
}

std::int64_t number(std::string_view digits, std::string_view whole) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size() || value < 0) malformed(whole);
  return value;
}

// The text up to `separator`, which is removed from `rest` together with it.
std::string_view next_part(std::string_view& rest, char separator) {
  const std::size_t end = rest.find(separator);
  const std::string_view part = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  return part;
}

}  // namespace

Faults::Faults(std::string_view text) {
  while (!text.empty()) {
    const std::string_view part = next_part(text, ';');
    if (!part.empty()) faults_.push_back(parse(part));
  }
}

Faults Faults::from_environment() {
  const char* text = std::getenv("ANNULUS_FAULT");  // NOLINT(concurrency-mt-unsafe): never set here
  return text == nullptr ? Faults() : Faults(text);
}

Faults::Fault Faults::parse(std::string_view text) {
  Fault fault;
  fault.text = text;
  std::string_view rest = text;
  std::string_view kind = next_part(rest, '@');
  fault.kind = next_part(kind, ':');
  if (fault.kind == "slow") {
    fault.number = number(kind, text);
  } else if (fault.kind == "signal") {
    fault.number = number(kind, text);
    if (fault.number < 1 || fault.number > SIGSYS) malformed(text);
  } else if (fault.kind == "throw") {
    fault.number = kind.empty() ? default_code : number(kind, text);
    if (fault.number < 1 || fault.number > static_cast<int>(ErrorKind::peer)) malformed(text);
  } else if (fault.kind != "kill" || !kind.empty()) {
    malformed(text);
  }
  while (!rest.empty()) parse_place(next_part(rest, ','), fault);
  if (fault.phase && fault.iteration >= 0) malformed(text);
  return fault;
}

void Faults::parse_place(std::string_view item, Fault& fault) {
  const std::string_view key = next_part(item, '=');
  if (key == "rank") {
    fault.rank = number(item, fault.text);
  } else if (key == "iteration") {
    fault.iteration = number(item, fault.text);
  } else if (key == "phase") {
    fault.phase = phase_named(item);
    if (!fault.phase) malformed(fault.text);
  } else {
    malformed(fault.text);
  }
}

void Faults::require_ranks(int ranks) const {
  for (const Fault& fault : faults_) {
    if (fault.rank < ranks) continue;
    throw Error(ErrorKind::usage,
                fmt::format("ANNULUS_FAULT '{}' is for a rank that is not there", fault.text))
        .values(fmt::format("a rank below {}", ranks), fmt::format("{}", fault.rank));
  }
}

void Faults::at_iteration(int rank, std::int64_t iteration) const {
  for (const Fault& fault : faults_) {
    if (fault.phase || (fault.rank >= 0 && fault.rank != rank)) continue;
    if (fault.iteration >= 0 && fault.iteration != iteration) continue;
    fault.happen(fmt::format("iteration {}", iteration));
  }
}

void Faults::at_phase(int rank, Phase phase) const {
  for (const Fault& fault : faults_) {
    if (fault.phase != phase || (fault.rank >= 0 && fault.rank != rank)) continue;
    fault.happen(fmt::format("phase {}", name(phase)));
  }
}

void Faults::Fault::happen(const std::string& where) const {
  if (kind == "slow") {
    std::this_thread::sleep_for(std::chrono::milliseconds(number));
  } else if (kind == "kill") {
    std::raise(SIGKILL);
  } else if (kind == "signal") {
    ::kill(getpid(), static_cast<int>(number));
  } else {
    fail(static_cast<ErrorKind>(number), "a fault put in by ANNULUS_FAULT at {}", where);
  }
}

}  // namespace annulus
