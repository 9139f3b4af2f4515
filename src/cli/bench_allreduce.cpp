// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include <fmt/format.h>

#include "cli/byte_sizes.h"
#include "cli/commands.h"
#include "cli/job.h"
#include "comm/agree.h"
#include "comm/comm_spec.h"
#include "core/host_memory.h"
#include "io/json.h"

namespace annulus {
namespace {

using Clock = std::chrono::steady_clock;

// Up to here a sum is one call of the communicator, as for losses and decisions; above it is what
// gradients take: buckets through shared windows.
constexpr std::int64_t largest_call = 64 << 10;

struct Sum {
  std::int64_t bytes = 0;
  double time_s = 0;       // median over steps of the time from when all ranks are ready
  std::int64_t wrong = 0;  // elements that are not the exact sum, of all ranks and steps
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Small whole numbers, whose sums are exact in any order, other ones on each rank.
float element_of(int rank, std::int64_t index, std::int64_t step) {
  return static_cast<float>((index + 7 * step) % 32 + rank);
}

float sum_of(int ranks, std::int64_t index, std::int64_t step) {
  const std::int64_t own = (index + 7 * step) % 32;
  const std::int64_t of_ranks = std::int64_t{ranks} * (ranks - 1) / 2;  // 0 + 1 + ...
  return static_cast<float>(own * ranks + of_ranks);
}

// One sum of a buffer that this rank fills, and the time from when all are ready.
class Summer {
 public:
  virtual ~Summer() = default;
  virtual std::span<float> buffer() = 0;
  virtual std::span<const float> run() = 0;
};

class CallSummer final : public Summer {
 public:
  CallSummer(Communicator& comm, std::int64_t elements)
      : comm_(comm), data_(static_cast<std::size_t>(elements)) {}
  std::span<float> buffer() override { return data_; }
  std::span<const float> run() override {
    comm_.all_reduce(TensorView(std::span(data_)), ReduceOp::sum);
    return data_;
  }

 private:
  Communicator& comm_;
  std::vector<float> data_;
};

class ReducerSummer final : public Summer {
 public:
  ReducerSummer(Communicator& comm, std::int64_t elements)
      : reducer_(comm.make_reducer(layout_of(comm, elements))) {}
  std::span<float> buffer() override {
    reducer_->begin_step();
    return reducer_->begin_shard();
  }
  std::span<const float> run() override {
    reducer_->end_shard();
    return reducer_->finish();
  }

 private:
  // Tensors of 4 MiB, so that buckets have the size that the default of comm.bucket_mb gives.
  static ReducerLayout layout_of(const Communicator& comm, std::int64_t elements) {
    constexpr std::int64_t tensor = 1 << 20;
    constexpr double mebibyte = 1 << 20;
    const CommSpec spec;
    ReducerLayout layout;
    for (std::int64_t left = elements; left > 0; left -= tensor)
      layout.tensors.push_back(std::min(left, tensor));
    layout.shards = comm.size();
    layout.bucket_bytes = static_cast<std::int64_t>(spec.bucket_mb * mebibyte);
    layout.last_bytes = static_cast<std::int64_t>(spec.last_bucket_mb * mebibyte);
    return layout;
  }

  std::unique_ptr<GradientReducer> reducer_;
};

std::int64_t count_wrong(std::span<const float> sum, int ranks, std::int64_t step) {
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    if (sum[i] != sum_of(ranks, static_cast<std::int64_t>(i), step)) ++wrong;
  }
  return wrong;
}

Sum measure(Communicator& comm, std::int64_t bytes, const AllreduceOptions& options) {
  const std::int64_t elements = bytes / static_cast<std::int64_t>(sizeof(float));
  const bool is_call = bytes <= largest_call;
  std::unique_ptr<Summer> summer;
  if (is_call) {
    summer = std::make_unique<CallSummer>(comm, elements);
  } else {
    summer = std::make_unique<ReducerSummer>(comm, elements);
  }
  std::vector<double> times;
  std::int64_t wrong = 0;
  for (std::int64_t step = 0; step < options.warmup + options.steps; ++step) {
    const std::span<float> buffer = summer->buffer();
    for (std::size_t i = 0; i < buffer.size(); ++i)
      buffer[i] = element_of(comm.rank(), static_cast<std::int64_t>(i), step);
    if (is_call) comm.barrier();
    const auto start = Clock::now();
    const std::span<const float> sum = summer->run();
    if (step >= options.warmup) times.push_back(seconds_since(start));
    wrong += count_wrong(sum, comm.size(), step);
    comm.barrier();
  }
  // After a barrier the slowest rank's time counts. A reducer's step allows no barrier in it: there
  // the rank that is ready last has the shortest time, and nobody has waited for it then.
  comm.all_reduce(TensorView(std::span<double>(times)), is_call ? ReduceOp::max : ReduceOp::min);
  comm.all_reduce(TensorView(std::span<std::int64_t>(&wrong, 1)), ReduceOp::sum);
  std::sort(times.begin(), times.end());
  return {bytes, times[times.size() / 2], wrong};
}

// Bandwidths as nccl-tests define them: bytes / time, and what the links carry, 2 (n - 1) / n of
// it.
double algorithm_bandwidth(const Sum& sum) {
  return static_cast<double>(sum.bytes) / sum.time_s;
}

double bus_bandwidth(const Sum& sum, int ranks) {
  return algorithm_bandwidth(sum) * 2 * (ranks - 1) / ranks;
}

void print(const Sum& sum, int ranks, bool json) {
  if (json) {
    std::puts(JsonObject()
                  .set("bytes", sum.bytes)
                  .set("time_s", sum.time_s)
                  .set("algbw_bytes_per_s", algorithm_bandwidth(sum))
                  .set("busbw_bytes_per_s", bus_bandwidth(sum, ranks))
                  .set("wrong", sum.wrong)
                  .text()
                  .c_str());
  } else {
    std::puts(fmt::format("{:>12} {:>12} {:>12.2f} {:>9.3f} {:>9.3f} {:>7}", sum.bytes,
                          sum.bytes / static_cast<std::int64_t>(sizeof(float)), 1e6 * sum.time_s,
                          1e-9 * algorithm_bandwidth(sum), 1e-9 * bus_bandwidth(sum, ranks),
                          sum.wrong)
                  .c_str());
  }
  std::fflush(stdout);
}

// A rank holds its buffer once, and slices of its neighbours' on the way.
void require_room(const Communicator& comm, std::int64_t bytes) {
  const auto available = available_memory();
  const std::int64_t needed = 2 * bytes * comm.local_size();
  if (!available || needed <= *available) return;
  throw Error(ErrorKind::resource,
              fmt::format("not enough memory for sums of {} bytes on the {} ranks of this node",
                          bytes, comm.local_size()))
      .values(fmt::format("at most {}", *available), fmt::format("{}", needed));
}

}  // namespace

int run_bench_allreduce(const AllreduceOptions& options) {
  return run_job("bench allreduce", [&](Communicator& comm, Progress& progress) {
    std::vector<std::int64_t> sizes;
    agree(comm, [&] {
      sizes = byte_sizes(options.bytes);
      for (const std::int64_t bytes : sizes) require_room(comm, bytes);
    });
    if (comm.rank() == 0 && !options.json) {
      std::puts(fmt::format("# {} ranks on {}, fp32 sum; median of {} sums after {}", comm.size(),
                            fmt::join(comm.hosts(), ", "), options.steps, options.warmup)
                    .c_str());
      std::puts("       bytes     elements      time us algbw GB/s busbw GB/s  wrong");
    }
    progress.enter(Phase::train);
    std::int64_t wrong = 0;
    for (const std::int64_t bytes : sizes) {
      const Sum sum = measure(comm, bytes, options);
      wrong += sum.wrong;
      if (comm.rank() == 0) print(sum, comm.size(), options.json);
    }
    if (wrong == 0) return 0;
    Error error(ErrorKind::numeric, fmt::format("{} elements of the sums are wrong", wrong));
    throw error.agreed(0, comm.hosts()[0]);
  });
}

}  // namespace annulus
