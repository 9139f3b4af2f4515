// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace annulus {

// A counter that one thread raises and others wait for, in the memory of a process or in memory
// that processes share. Whoever sees a value also sees what was written before it was stored.
// Values wrap around: only their distance counts.
class Word {
 public:
  std::uint32_t load() const { return value_.load(std::memory_order_acquire); }
  bool reached(std::uint32_t target) const {
    return static_cast<std::int32_t>(load() - target) >= 0;
  }
  // Stores and wakes whoever sleeps; costs a system call only if somebody does.
  void store(std::uint32_t value);
  // Adds one; several threads may do so.
  void raise();
  // Sleeps while the value is `seen`, for at most `limit`; may wake for no reason.
  void sleep(std::uint32_t seen, std::chrono::nanoseconds limit);

 private:
  void wake();

  std::atomic<std::uint32_t> value_{0};
  std::atomic<std::uint32_t> sleepers_{0};
};

}  // namespace annulus
