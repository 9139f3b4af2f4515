// SPDX-License-Identifier: Apache-2.0
#include "core/fault.h"

#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "core/error.h"

namespace annulus {
namespace {

[[noreturn]] void malformed(std::string_view text) {
  fail(ErrorKind::usage,
       "ANNULUS_FAULT: '{}' is not KIND@rank=R,iteration=I with KIND throw, kill or slow:MS", text);
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
  std::string_view rest = text;
  std::string_view kind = next_part(rest, '@');
  fault.kind = next_part(kind, ':');
  if (fault.kind == "slow") {
    fault.milliseconds = number(kind, text);
  } else if ((fault.kind != "throw" && fault.kind != "kill") || !kind.empty()) {
    malformed(text);
  }
  while (!rest.empty()) {
    std::string_view item = next_part(rest, ',');
    const std::string_view key = next_part(item, '=');
    if (key == "rank") {
      fault.rank = number(item, text);
    } else if (key == "iteration") {
      fault.iteration = number(item, text);
    } else {
      malformed(text);
    }
  }
  return fault;
}

void Faults::at_iteration(int rank, std::int64_t iteration) const {
  for (const Fault& fault : faults_) {
    if (fault.rank >= 0 && fault.rank != rank) continue;
    if (fault.iteration >= 0 && fault.iteration != iteration) continue;
    if (fault.kind == "slow") {
      std::this_thread::sleep_for(std::chrono::milliseconds(fault.milliseconds));
    } else if (fault.kind == "kill") {
      std::raise(SIGKILL);
    } else {
      fail(ErrorKind::bug, "a fault put in by ANNULUS_FAULT at iteration {}", iteration);
    }
  }
}

}  // namespace annulus
