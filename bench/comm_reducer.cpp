// SPDX-License-Identifier: Apache-2.0
// Time of the gradient sum alone: nothing is computed meanwhile.
//   mpirun -n 2 comm_reducer [MIB [STEPS]]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "comm/job.h"
#include "core/error.h"

namespace annulus {
namespace {

// Seconds of each step, with one shard a rank. Bus bandwidth counts 2 (n-1)/n of the bytes a rank.
std::vector<double> time_steps(Communicator& comm, std::int64_t bytes, int steps) {
  ReducerLayout layout;
  layout.tensors.assign(16, bytes / 16 / static_cast<std::int64_t>(sizeof(float)));
  layout.shards = comm.size();
  const auto reducer = comm.make_reducer(layout);
  std::vector<double> seconds;
  for (int step = 0; step < steps; ++step) {
    reducer->begin_step();
    const auto gradients = reducer->begin_shard();
    std::fill(gradients.begin(), gradients.end(), 1.0F);
    const auto start = std::chrono::steady_clock::now();
    reducer->end_shard();
    const auto sum = reducer->finish();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    seconds.push_back(took.count());
    require_equal(static_cast<float>(comm.size()), sum[0], "sum of ones");
    comm.barrier();
  }
  return seconds;
}

void measure(Communicator& comm, std::int64_t mebibytes, int steps) {
  const std::int64_t bytes = mebibytes << 20;
  auto seconds = time_steps(comm, bytes, steps);
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  const double ranks = comm.size();
  if (comm.rank() != 0) return;
  fmt::print(
      "{} MiB, {} ranks on {} nodes: median {:.2f} ms, min {:.2f}, max {:.2f}; bus {:.2f} "
      "GB/s\n",
      mebibytes, comm.size(), comm.hosts().size(), median * 1e3, seconds.front() * 1e3,
      seconds.back() * 1e3, static_cast<double>(bytes) * 2 * (ranks - 1) / ranks / median * 1e-9);
}

}  // namespace
}  // namespace annulus

int main(int count, char** words) {
  annulus::Progress progress;
  try {
    const auto comm = annulus::join_job(
        progress, [](const annulus::Error& error) { fmt::print(stderr, "{}\n", error.what()); });
    annulus::measure(*comm, count > 1 ? std::atoll(words[1]) : 25,
                     count > 2 ? std::atoi(words[2]) : 30);
    return 0;
  } catch (const annulus::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return error.exit_code();
  }
}
