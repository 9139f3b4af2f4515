// SPDX-License-Identifier: Apache-2.0
// What only real ranks show: started by comm_mpi_test.sh under mpirun, once for each case. Returns
// the exit code of the error that a case ends with.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "comm/agree.h"
#include "comm/job.h"
#include "core/error.h"
#include "support/gradients.h"

namespace annulus {
namespace {

void expect(bool condition, const char* what) {
  require(condition, ErrorKind::bug, "wrong: {}", what);
}

// ---------------------------------------------------------------- the cases that end well

void check_places(Communicator& comm) {
  const auto texts =
      gather_texts(comm, fmt::format("{} {} {}", comm.rank(), comm.node(), comm.local_rank()));
  std::vector<std::string> expected;
  const auto& counts = comm.ranks_by_node();
  for (std::size_t node = 0; node < counts.size(); ++node) {
    for (int local = 0; local < counts[node]; ++local) {
      expected.push_back(fmt::format("{} {} {}", expected.size(), node, local));
    }
  }
  expect(texts == expected, "ranks are numbered by node and local rank");
  expect(comm.local_size() == counts[static_cast<std::size_t>(comm.node())], "local size");
  expect(comm.hosts().size() == counts.size(), "a host for each node");
}

template <class T>
void check_sum(Communicator& comm, std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<T>(i % 100) + T(comm.rank());
  comm.all_reduce(std::span(values), ReduceOp::sum);
  const int ranks = comm.size();
  const int sum_of_ranks = ranks * (ranks - 1) / 2;
  for (std::size_t i = 0; i < count; ++i) {
    const T expected = T(ranks) * static_cast<T>(i % 100) + T(sum_of_ranks);
    expect(values[i] == expected, "all_reduce");
  }
}

void check_collectives(Communicator& comm) {
  for (const std::size_t count : {1, 5, 1000, 100000}) {
    check_sum<float>(comm, count);
    check_sum<double>(comm, count);
    check_sum<std::int64_t>(comm, count);
  }
  expect(agree_on_largest(comm, comm.rank()) == comm.size() - 1, "largest");
  for (int root = 0; root < comm.size(); ++root) {
    std::vector<std::int32_t> values(3000, comm.rank());
    comm.broadcast(std::span(values), root);
    expect(values == std::vector<std::int32_t>(3000, root), "broadcast");
  }
  std::vector<float> data(static_cast<std::size_t>(2 * comm.size()));
  std::iota(data.begin(), data.end(), 0.0F);
  std::vector<float> slice(2);
  comm.reduce_scatter(std::span(data), std::span(slice));
  expect(slice[1] == static_cast<float>((2 * comm.rank() + 1) * comm.size()), "reduce_scatter");
  expect(agree_on_text(comm, [] { return "from rank 0"; }) == "from rank 0", "text");
}

void check_split(Communicator& comm) {
  const auto part = comm.split(comm.rank() % 2, -comm.rank());
  std::int64_t sum = comm.rank();
  part->all_reduce(std::span(&sum, 1), ReduceOp::sum);
  std::int64_t expected = 0;
  for (int rank = comm.rank() % 2; rank < comm.size(); rank += 2) expected += rank;
  expect(sum == expected, "sum of half of the ranks");
}

bool is_right(std::span<const float> sum, const std::vector<float>& one, bool exact) {
  if (exact) return std::memcmp(sum.data(), one.data(), one.size() * sizeof(float)) == 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    if (std::abs(sum[i] - one[i]) > 2e-5F) return false;
  }
  return true;
}

void check_reducer(Communicator& comm, const ReducerLayout& layout, int steps) {
  const bool exact = sum_is_exact(layout.shards, comm.ranks_by_node());
  const auto reducer = comm.make_reducer(layout);
  for (int step = 0; step < steps; ++step) {
    const auto sum = testing::run_step(comm, *reducer, layout, step);
    expect(sum.size() == static_cast<std::size_t>(testing::elements_of(layout)), "elements");
    expect(is_right(sum, testing::expected_sum(layout, step), exact), "sum of gradients");
    std::fill(sum.begin(), sum.end(), 0.0F);
  }
}

ReducerLayout large_layout(std::int64_t shards) {
  ReducerLayout layout;
  layout.tensors = {300000, 1000, 77777, 200000, 5};
  layout.tail = 3;
  layout.shards = shards;
  layout.bucket_bytes = 1 << 20;
  layout.last_bytes = 1 << 16;
  return layout;
}

void work(Communicator& comm) {
  check_places(comm);
  check_collectives(comm);
  check_split(comm);
  for (const int shards : {1, 2, 3, 4, 7, 8, 16}) {
    check_reducer(comm, testing::small_layout(shards), 3);
  }
  const std::int64_t before = comm.bytes_between_hosts();
  check_reducer(comm, large_layout(comm.size()), 2);
  const bool sent = comm.bytes_between_hosts() > before;
  const std::size_t nodes = comm.hosts().size();
  expect(nodes == 1 ? !sent : sent || comm.local_rank() > 0, "bytes between hosts");
  testing::limit_messages(comm, 1000);
  check_reducer(comm, large_layout(2), 1);
  if (comm.rank() != 0) return;
  std::string hosts;
  for (const auto& host : comm.hosts()) hosts += " " + host;
  fmt::print("ok: {} ranks on {} nodes:{}; rank 0 sent {} bytes between hosts\n", comm.size(),
             nodes, hosts, comm.bytes_between_hosts());
}

// Without a launcher: no MPI, and so no thread.
void work_alone(Communicator& comm) {
  namespace fs = std::filesystem;
  work(comm);
  expect(comm.size() == 1, "one rank");
  const auto threads = std::distance(fs::directory_iterator("/proc/self/task"), {});
  expect(threads == 1, "no thread was started");
}

// ---------------------------------------------------------------- the cases that end badly

bool is_last(const Communicator& comm) {
  return comm.rank() == comm.size() - 1;
}

void lose_last_rank(Communicator& comm) {
  comm.set_timeout(0.5);
  const ReducerLayout layout = testing::small_layout(comm.size());
  const auto reducer = comm.make_reducer(layout);
  if (is_last(comm)) std::this_thread::sleep_for(std::chrono::seconds(100));
  testing::run_step(comm, *reducer, layout, 0);
}

void lose_last_rank_in_barrier(Communicator& comm) {
  comm.set_timeout(0.5);
  if (is_last(comm)) std::this_thread::sleep_for(std::chrono::seconds(100));
  comm.barrier();
}

void abort_last_rank(Communicator& comm) {
  if (is_last(comm)) comm.abort(7);
  comm.barrier();
}

void abort_with_256(Communicator& comm) {
  if (is_last(comm)) comm.abort(256);
  comm.barrier();
}

void fail_on_last_rank(Communicator& comm) {
  if (is_last(comm)) fail(ErrorKind::data, "only one rank sees this");
  comm.barrier();
}

void fail_together(Communicator& comm) {
  agree(comm, [&] { require(!is_last(comm), ErrorKind::output, "all ranks see this"); });
}

void ask_for_too_much_memory(Communicator& comm) {
  ReducerLayout layout;
  layout.tensors = {std::int64_t{1} << 48};
  comm.make_reducer(layout);
}

const std::map<std::string, std::function<void(Communicator&)>> cases{
    {"work", work},
    {"alone", work_alone},
    {"lost", lose_last_rank},
    {"lost_in_barrier", lose_last_rank_in_barrier},
    {"abort", abort_last_rank},
    {"abort_256", abort_with_256},
    {"fail", fail_on_last_rank},
    {"fail_together", fail_together},
    {"memory", ask_for_too_much_memory},
};

int run_case(const char* name) {
  Progress progress;
  try {
    const auto comm =
        join_job(progress, [](const Error& error) { fmt::print(stderr, "{}\n", error.what()); });
    cases.at(name)(*comm);
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return error.exit_code();
  }
}

}  // namespace
}  // namespace annulus

int main(int count, char** words) {
  return count == 2 ? annulus::run_case(words[1]) : 2;
}
