// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "comm/job.h"
#include "comm/worker.h"
#include "core/error.h"
#include "support/gradients.h"

namespace annulus {
namespace {

constexpr double timeout = 0.2;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Runs `work`, which must fail in time with an Error (peer), and returns the message.
std::string message_of_loss(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  try {
    work();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::peer);
    CHECK(seconds_since(start) < 25 * timeout);
    return error.message();
  }
  return "no error";
}

// All ranks but the last take part in `work`; each returns its message.
std::vector<std::string> messages_without_last(int ranks, int nodes,
                                               const std::function<void(Communicator&)>& work) {
  std::vector<std::string> messages(static_cast<std::size_t>(ranks - 1));
  run_as_threads(ranks, nodes, [&](Communicator& comm) {
    comm.set_timeout(timeout);
    comm.barrier();
    if (comm.rank() == comm.size() - 1) return;
    messages[static_cast<std::size_t>(comm.rank())] = message_of_loss([&] { work(comm); });
    // Whoever has lost a peer does not get far again.
    CHECK_THROWS_AS(comm.barrier(), Error);
  });
  return messages;
}

TEST_CASE("a rank that never comes is named with its host within the time limit") {
  for (const auto& message :
       messages_without_last(3, 1, [](Communicator& comm) { comm.barrier(); })) {
    CHECK(message.find("barrier: no answer from rank 2 (") == 0);
    CHECK(message.find(" within 0.2 s") != std::string::npos);
  }
}

TEST_CASE("a rank of another node that never comes is named by all of this node") {
  const auto sum = [](Communicator& comm) {
    std::int64_t value = 1;
    comm.all_reduce(std::span(&value, 1), ReduceOp::sum);
  };
  for (const auto& message : messages_without_last(3, 3, sum)) {
    CHECK(message.find("all_reduce: no answer from rank 2 (") == 0);
  }
  // Ranks 0 and 1 on one node, 2 on another; 3 has no part in it.
  run_as_threads(4, 2, [&](Communicator& comm) {
    comm.set_timeout(timeout);
    const auto part = comm.split(comm.rank() / 3, 0);
    if (comm.rank() > 1) return;
    CHECK(part->ranks_by_node() == std::vector<int>{2, 1});
    const std::string message = message_of_loss([&] { sum(*part); });
    CHECK(message.find("all_reduce: no answer from rank 2 (") == 0);
  });
}

TEST_CASE("a rank that stops in a step is named with the bucket") {
  for (const int nodes : {1, 3}) {
    std::atomic<int> lost{0};
    run_as_threads(3, nodes, [&](Communicator& comm) {
      comm.set_timeout(timeout);
      const ReducerLayout layout = testing::small_layout(3);
      const auto reducer = comm.make_reducer(layout);
      testing::run_step(comm, *reducer, layout, 0);
      if (comm.rank() == 2) {
        reducer->begin_step();
        reducer->begin_shard();
        reducer->tensor_ready(0);  // the first bucket alone
        while (lost < 2) std::this_thread::yield();
        return;
      }
      const std::string message =
          message_of_loss([&] { testing::run_step(comm, *reducer, layout, 1); });
      CHECK(message.find("gradient sum of bucket 1: no answer from rank 2 (") == 0);
      ++lost;
    });
  }
}

TEST_CASE("progress names the bucket that is being summed") {
  std::atomic<bool> first_seen{false};
  std::atomic<int> checked{0};
  run_as_threads(2, 1, [&](Communicator& comm) {
    const ReducerLayout layout = testing::small_layout(2);
    const auto reducer = comm.make_reducer(layout);
    testing::run_step(comm, *reducer, layout, 0);
    CHECK(testing::progress_of(comm).bucket == -1);
    reducer->begin_step();
    reducer->begin_shard();
    if (comm.rank() == 0) {
      reducer->tensor_ready(0);
      while (testing::progress_of(comm).bucket != 0) std::this_thread::yield();
      first_seen = true;
    }
    while (!first_seen) std::this_thread::yield();
    CHECK(testing::progress_of(comm).bucket == (comm.rank() == 0 ? 0 : -1));
    ++checked;
    while (checked < 2) std::this_thread::yield();
    reducer->end_shard();
    reducer->finish();
  });
}

TEST_CASE("a communication thread that hangs in a library is left behind") {
  std::atomic<bool> release{false};
  std::atomic<bool> released{false};
  auto worker = std::make_unique<Worker>(0.05);
  auto hang = [&] {
    while (!release) std::this_thread::yield();
    released = true;
  };
  const std::string message = message_of_loss([&] { worker->run(0.01, hang); });
  CHECK(message == "the communication thread has not come back for 0.06 s");
  CHECK(worker->stuck());
  worker.reset();
  release = true;
  while (!released) std::this_thread::yield();
}

TEST_CASE("a slow job that shows signs of life is waited for") {
  Worker worker(0.05);
  const auto start = std::chrono::steady_clock::now();
  auto slow = [&] {
    while (seconds_since(start) < 0.3) worker.beat();
  };
  worker.run(0.01, slow);
  CHECK(seconds_since(start) >= 0.3);
}

}  // namespace
}  // namespace annulus
