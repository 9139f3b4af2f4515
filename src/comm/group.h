// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/deadline.h"
#include "comm/roster.h"
#include "comm/transport.h"
#include "comm/word.h"
#include "comm/worker.h"
#include "core/error.h"
#include "core/progress.h"

namespace annulus {

// A collective under way, for its deadline and for messages.
struct Task {
  const char* name;
  Deadline deadline;
  int bucket = -1;
};

// What a communicator and its reducers share: who the ranks are, the communication thread, messages
// and the one place that waits. With one rank there is neither thread nor transport. Its functions
// are called on the communication thread unless they say otherwise.
class Group {
 public:
  // The largest message; longer ones go in pieces.
  static constexpr std::size_t message_limit = std::size_t{1} << 30;

  Group(Roster roster, std::shared_ptr<Worker> worker, std::unique_ptr<Transport> transport,
        Progress& progress);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  // From any thread.
  const Roster& roster() const { return roster_; }
  Progress& progress() { return progress_; }
  double timeout() const { return timeout_; }
  void set_timeout(double seconds) { timeout_ = seconds; }
  std::int64_t bytes_between_nodes() const { return bytes_between_nodes_; }
  Task task(const char* name, int bucket = -1) const {
    return {name, Deadline::after(timeout_), bucket};
  }
  // For tests: a smaller limit of messages.
  void set_message_limit(std::size_t bytes) { message_limit_ = bytes; }
  // Where each local rank shows which rank of another node it waits for (-1: none), so that its
  // neighbours blame that one. By local rank; the memory must outlive the group's use.
  void set_signs(std::vector<std::atomic<int>*> signs) { signs_ = std::move(signs); }
  // Makes every wait that is under way, and every later one, fail.
  void cancel() { cancelled_ = true; }

  // Does f(); its errors get this rank and its host.
  template <class F>
  void with_origin(F&& f) const {
    try {
      f();
    } catch (Error& error) {
      error.on(roster_.rank, roster_.host_of(roster_.rank));
      throw;
    }
  }
  // From the trainer's thread: does `job` on the communication thread. Errors get rank and host.
  template <class F>
  void run(F&& job) {
    with_origin([&] { worker_->run(timeout_, job); });
  }
  template <class F>
  void start(F& job) {
    with_origin([&] { worker_->start(job); });
  }
  void wait_for_job() {
    with_origin([&] { worker_->wait(timeout_); });
  }
  // Whether waits can succeed at all. From the trainer's thread while no job runs.
  bool usable() const { return !broken_ && !cancelled_; }
  const std::shared_ptr<Worker>& worker() const { return worker_; }
  bool has_transport() const { return transport_ != nullptr; }
  Transport& transport() { return *transport_; }

  // Memory shared in the node: reserved by `allocate` on the trainer's thread, then connected. On a
  // node with one rank it is plain memory.
  std::unique_ptr<Segment> allocate(std::size_t bytes);
  void connect(Segment& segment, const Task& task);

  // Start messages of any size; empty ones are nothing.
  void send(int to, std::span<const std::byte> data);
  void receive(int from, std::span<std::byte> data);
  // Returns when all messages are over.
  void finish_messages(const Task& task);
  // Waits for done() with doze(waited) between looks; missing() says who is late. Error (peer)
  // after the deadline, and then in every later wait.
  template <class Done, class Doze, class Missing>
  void wait(const Task& task, Done&& done, Doze&& doze, Missing&& missing) {
    const auto look = [&] {
      look_around();
      return done();
    };
    try {
      if (!wait_until(task.deadline, look, doze)) fail_late(task, missing());
    } catch (...) {
      give_up();
      throw;
    }
  }
  template <class Missing>
  void wait_for_word(const Task& task, Word& word, std::uint32_t target, Missing&& missing) {
    wait(
        task, [&] { return word.reached(target); },
        [&](std::chrono::nanoseconds) {
          const std::uint32_t seen = word.load();
          if (static_cast<std::int32_t>(seen - target) < 0) word.sleep(seen, nap_time);
        },
        missing);
  }
  // The local rank, or the rank of another node that it waits for itself.
  int to_blame(int local_rank) const;
  // Returns when word_of(local rank) has reached `target` for all ranks of the node.
  template <class WordOf>
  void wait_for_node(const Task& task, std::uint32_t target, WordOf&& word_of) {
    for (int local = 0; local < roster_.local_size(); ++local) {
      wait_for_word(task, word_of(local), target, [&] { return late_in_node(target, word_of); });
    }
  }
  // The ranks of this node whose word has not reached `target`, by name.
  template <class WordOf>
  std::string late_in_node(std::uint32_t target, WordOf&& word_of) const {
    std::vector<int> late;
    for (int local = 0; local < roster_.local_size(); ++local) {
      if (!word_of(local).reached(target)) late.push_back(to_blame(local));
    }
    return roster_.names(late);
  }

 private:
  // Proves to be alive, lets messages make progress, and throws where waiting is pointless.
  void look_around();
  [[noreturn]] void fail_late(const Task& task, const std::string& missing) const;
  void give_up();

  Roster roster_;
  std::shared_ptr<Worker> worker_;
  std::unique_ptr<Transport> transport_;
  Progress& progress_;
  std::atomic<double> timeout_{300};
  std::size_t message_limit_ = message_limit;
  std::atomic<std::int64_t> bytes_between_nodes_{0};
  std::atomic<bool> cancelled_{false};
  std::vector<std::atomic<int>*> signs_;
  bool broken_ = false;  // a wait has failed: messages are in an unknown state
};

}  // namespace annulus
