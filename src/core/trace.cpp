// SPDX-License-Identifier: Apache-2.0
#include "core/trace.h"

#include <algorithm>

#include <fmt/format.h>

namespace annulus {
namespace {

using Microseconds = std::chrono::duration<double, std::micro>;

std::string lane_name(int lane) {
  if (lane == Trace::trainer) return "trainer";
  if (lane == Trace::communication) return "communication";
  return fmt::format("loader {}", lane - Trace::first_worker);
}

// Names are those of layers and of our own words; a quote or backslash is not among them, but the
// host's name is not ours.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  }
  return out + '"';
}

std::string label(const Trace::Event& event) {
  return event.number < 0 ? fmt::format("{} {}", event.name, event.kind)
                          : fmt::format("{} {} {}", event.name, event.number, event.kind);
}

}  // namespace

Trace::Trace(int workers, std::size_t events_a_lane) {
  for (int lane = 0; lane < first_worker + workers; ++lane) {
    lanes_.push_back(std::make_unique<Lane>());
    lanes_.back()->events.resize(events_a_lane);
  }
}

void Trace::record(int lane, const Event& event) {
  if (lane >= lanes()) return;
  Lane& own = *lanes_[static_cast<std::size_t>(lane)];
  const std::size_t count = own.count.load(std::memory_order_relaxed);
  if (count == own.events.size()) return;
  own.events[count] = event;
  own.count.store(count + 1, std::memory_order_release);
}

std::span<const Trace::Event> Trace::events(int lane) const {
  const Lane& own = *lanes_[static_cast<std::size_t>(lane)];
  return {own.events.data(), own.count.load(std::memory_order_acquire)};
}

std::string Trace::to_chrome(int rank, const std::string& host) const {
  std::string text = fmt::format(
      "{{\"traceEvents\":[\n{{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":{},\"args\":{{"
      "\"name\":"
      "{}}}}}",
      rank, quoted(fmt::format("rank {} on {}", rank, host)));
  for (int lane = 0; lane < lanes(); ++lane) {
    text += fmt::format(
        ",\n{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":{}}}}"
        "}",
        rank, lane, quoted(lane_name(lane)));
    for (const Event& event : events(lane)) {
      text += fmt::format(
          ",\n{{\"name\":{},\"cat\":{},\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{:.3f},\"dur\":{:."
          "3f}}}",
          quoted(label(event)), quoted(event.kind), rank, lane,
          Microseconds(event.begin.time_since_epoch()).count(),
          Microseconds(event.end - event.begin).count());
    }
  }
  return text + "\n]}\n";
}

}  // namespace annulus
