// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace annulus {

// What the threads of a rank did, and when: for profiles. Each thread writes a lane of its own, so
// that recording takes no lock and, after the start, no memory; a lane that is full records no
// more.
class Trace {
 public:
  using Clock = std::chrono::steady_clock;

  // The lanes: trainer's thread, communication thread, then the loader's workers.
  static constexpr int trainer = 0;
  static constexpr int communication = 1;
  static constexpr int first_worker = 2;

  // `name` and `kind` refer to text that outlives the trace: a layer and "forward", "bucket" and
  // "reduce". `number` tells those of one name apart; -1: there is one.
  struct Event {
    std::string_view name;
    std::string_view kind;
    std::int64_t number = -1;
    Clock::time_point begin;
    Clock::time_point end;
  };

  Trace(int workers, std::size_t events_a_lane);

  void record(int lane, const Event& event);
  int lanes() const { return static_cast<int>(lanes_.size()); }
  // What a lane holds so far.
  std::span<const Event> events(int lane) const;

  // The events as Chrome's trace format (one object with "traceEvents", times in microseconds of
  // the machine's monotonic clock), which ui.perfetto.dev and chrome://tracing show. `rank` becomes
  // the process.
  std::string to_chrome(int rank, const std::string& host) const;

 private:
  struct Lane {
    std::vector<Event> events;
    std::atomic<std::size_t> count{0};
  };
  std::vector<std::unique_ptr<Lane>> lanes_;
};

// Records the time from its making to its end. Costs a comparison where there is no trace.
class TraceRange {
 public:
  TraceRange(Trace* trace, int lane, std::string_view name, std::string_view kind,
             std::int64_t number = -1)
      : trace_(trace), lane_(lane) {
    if (trace_ != nullptr) event_ = {name, kind, number, Trace::Clock::now(), {}};
  }
  ~TraceRange() {
    if (trace_ == nullptr) return;
    event_.end = Trace::Clock::now();
    trace_->record(lane_, event_);
  }
  TraceRange(const TraceRange&) = delete;
  TraceRange& operator=(const TraceRange&) = delete;

 private:
  Trace* trace_;
  int lane_;
  Trace::Event event_;
};

}  // namespace annulus
