// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "comm/word.h"

namespace annulus {

// The communication thread of one rank: does one job at a time for the trainer's thread. Handing
// over a job allocates nothing.
class Worker {
 public:
  // `grace_seconds`: how much longer than its own deadlines a job may take to end.
  explicit Worker(double grace_seconds = 2);
  // Ends the thread. A thread that is stuck (see wait) is left behind.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Starts `job()` on the thread; it must live until wait() returns.
  template <class F>
  void start(F& job) {
    post({[](void* object) { (*static_cast<F*>(object))(); }, &job});
  }
  // Returns when the job is done and throws what it threw. Error (peer) when the job shows no sign
  // of life (beat) for `silence` seconds and the grace, because it is stuck in a library; 0: never.
  void wait(double silence);

  template <class F>
  void run(double silence, F&& job) {
    start(job);
    wait(silence);
  }

  // Error (bug) while a job is under way.
  void require_idle() const;
  // Whether wait() has given up: no more jobs can be done.
  bool stuck() const { return stuck_; }

  // From a job: it is alive.
  void beat() { state_->beats.fetch_add(1, std::memory_order_relaxed); }
  // What the thread does every few milliseconds while it has no job. Call it from a job.
  void set_idle(std::function<void()> idle) { state_->idle = std::move(idle); }

 private:
  struct Job {
    void (*call)(void*);
    void* object;
  };
  // Shared with the thread, so that one that is stuck can be left behind.
  struct State {
    Job job{};
    std::exception_ptr error;
    std::function<void()> idle;
    Word posted;
    Word done;
    std::atomic<std::uint32_t> beats{0};
    std::atomic<bool> ended{false};
  };
  void post(Job job);
  static void loop(State& state);

  std::shared_ptr<State> state_ = std::make_shared<State>();
  double grace_;
  std::uint32_t count_ = 0;  // jobs posted
  bool stuck_ = false;
  std::thread thread_;
};

}  // namespace annulus
