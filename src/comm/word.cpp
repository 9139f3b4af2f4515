// SPDX-License-Identifier: Apache-2.0
#include "comm/word.h"

#include <climits>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace annulus {
namespace {

// std::atomic's own wait works within one process only, so the kernel is asked directly.
void futex(const std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* limit) {
  static_assert(sizeof(word) == sizeof(std::uint32_t));
  syscall(SYS_futex, &word, operation, value, limit, nullptr, 0);
}

}  // namespace

// Both sides use sequential consistency: either the storer sees the sleeper, or the kernel sees the
// new value and does not let it sleep.
void Word::store(std::uint32_t value) {
  value_.store(value, std::memory_order_seq_cst);
  wake();
}

void Word::raise() {
  value_.fetch_add(1, std::memory_order_seq_cst);
  wake();
}

void Word::wake() {
  if (sleepers_.load(std::memory_order_seq_cst) != 0) futex(value_, FUTEX_WAKE, INT_MAX, nullptr);
}

void Word::sleep(std::uint32_t seen, std::chrono::nanoseconds limit) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  const timespec time{static_cast<time_t>(seconds.count()),
                      static_cast<long>((limit - seconds).count())};
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  futex(value_, FUTEX_WAIT, seen, &time);
  sleepers_.fetch_sub(1, std::memory_order_seq_cst);
}

}  // namespace annulus
