// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <doctest/doctest.h>

#include "comm/group_communicator.h"
#include "comm/job.h"
#include "support/allocations.h"
#include "support/gradients.h"

namespace annulus {
namespace {

// Of this thread and of the communication thread.
std::int64_t allocations_of_rank(Communicator& comm) {
  std::int64_t of_worker = 0;
  const auto& worker = dynamic_cast<GroupCommunicator&>(comm).group().worker();
  auto ask = [&] { of_worker = allocations(); };
  if (worker) worker->run(0, ask);
  return allocations() + of_worker;
}

TEST_CASE("a step of the reducer allocates nothing after the first") {
  for (const std::pair<int, int>& job : {std::pair{1, 1}, {2, 1}, {4, 2}, {3, 3}, {5, 2}}) {
    CAPTURE(job.first);
    run_as_threads(job.first, job.second, [](Communicator& comm) {
      const ReducerLayout layout = testing::small_layout(8);
      const auto reducer = comm.make_reducer(layout);
      testing::run_step(comm, *reducer, layout, 0);
      const std::int64_t before = allocations_of_rank(comm);
      for (int step = 0; step < 5; ++step) testing::run_step(comm, *reducer, layout, step);
      CHECK(allocations_of_rank(comm) == before);
    });
  }
}

TEST_CASE("the counter sees what is allocated") {
  run_as_threads(2, 1, [](Communicator& comm) {
    const std::int64_t before = allocations_of_rank(comm);
    comm.make_reducer(testing::small_layout(2));
    CHECK(allocations_of_rank(comm) > before);
  });
}

}  // namespace
}  // namespace annulus
