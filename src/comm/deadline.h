// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace annulus {

// A point in time after which waiting is given up, or never.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  // `seconds` from now; 0 or more than thirty years: never.
  static Deadline after(double seconds) {
    Deadline deadline;
    deadline.seconds_ = seconds > 0 && seconds < 1e9 ? seconds : 0;
    if (deadline.seconds_ > 0) {
      const std::chrono::duration<double> limit(deadline.seconds_);
      deadline.end_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(limit);
    }
    return deadline;
  }

  bool passed() const { return seconds_ > 0 && Clock::now() >= end_; }
  // What it was set to; 0: never.
  double seconds() const { return seconds_; }

 private:
  double seconds_ = 0;
  Clock::time_point end_;
};

// For how long a thread that waits for another keeps its core before it sleeps.
inline constexpr std::chrono::microseconds spin_time{50};
// The longest sleep before a waiting thread looks around again.
inline constexpr std::chrono::milliseconds nap_time{5};

// Waits until done() is true: spins first, then calls doze(time waited so far) between looks.
// False when the deadline passes first. Every wait of ranks for one another goes through here.
template <class Done, class Doze>
bool wait_until(const Deadline& deadline, Done&& done, Doze&& doze) {
  const auto start = Deadline::Clock::now();
  while (!done()) {
    const auto waited = Deadline::Clock::now() - start;
    if (waited < spin_time) {
      std::this_thread::yield();  // where ranks outnumber cores, the other may need this one
      continue;
    }
    if (deadline.passed()) return done();
    doze(std::chrono::nanoseconds(waited));
  }
  return true;
}

// Sleeps a small part of the time waited so far, so that an answer is seen soon after it came. Some
// libraries move data only when asked: in the first second the sleeps stay as short as the buffers
// of a fast network need.
inline void doze_in_proportion(std::chrono::nanoseconds waited) {
  using namespace std::chrono_literals;
  const std::chrono::nanoseconds longest = waited < 1s ? 50us : 1000us;
  std::this_thread::sleep_for(std::clamp<std::chrono::nanoseconds>(waited / 16, 10us, longest));
}

}  // namespace annulus
