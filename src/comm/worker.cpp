// SPDX-License-Identifier: Apache-2.0
#include "comm/worker.h"

#include "comm/deadline.h"
#include "core/error.h"

namespace annulus {
Worker::Worker(double grace_seconds)
    : grace_(grace_seconds), thread_([state = state_] { loop(*state); }) {}

Worker::~Worker() {
  state_->ended.store(true, std::memory_order_release);
  state_->posted.store(count_ + 1);
  if (stuck_) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

void Worker::require_idle() const {
  require(state_->done.load() == count_, ErrorKind::bug, "the communication thread is busy");
}

void Worker::post(Job job) {
  require_idle();
  state_->job = job;
  state_->posted.store(++count_);
}

void Worker::wait(double silence) {
  const double limit = silence > 0 ? silence + grace_ : 0;
  const auto done = [&] { return state_->done.reached(count_); };
  const auto doze = [&](std::chrono::nanoseconds) { state_->done.sleep(count_ - 1, nap_time); };
  std::uint32_t beats = state_->beats.load(std::memory_order_relaxed);
  while (!wait_until(Deadline::after(limit), done, doze)) {
    const std::uint32_t now = state_->beats.load(std::memory_order_relaxed);
    if (std::exchange(beats, now) != now) continue;
    stuck_ = true;
    fail(ErrorKind::peer, "the communication thread has not come back for {:g} s", limit);
  }
  if (state_->error) std::rethrow_exception(std::exchange(state_->error, nullptr));
}

void Worker::loop(State& state) {
  for (std::uint32_t next = 1;; ++next) {
    const auto posted = [&] { return state.posted.reached(next); };
    const auto doze = [&](std::chrono::nanoseconds) {
      state.posted.sleep(next - 1, state.idle ? nap_time : std::chrono::milliseconds(1000));
      if (state.idle) state.idle();
    };
    wait_until(Deadline(), posted, doze);
    if (state.ended.load(std::memory_order_acquire)) return;
    try {
      state.job.call(state.job.object);
    } catch (...) {
      state.error = std::current_exception();
    }
    state.done.store(next);
  }
}

}  // namespace annulus
