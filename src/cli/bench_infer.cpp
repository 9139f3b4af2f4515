// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdio>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/job.h"
#include "cli/run_config.h"
#include "cli/spread.h"
#include "cli/start.h"
#include "cli/version.h"
#include "core/host_memory.h"
#include "core/shards.h"
#include "train/session.h"

namespace annulus {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Random inputs of one pass, and the pass.
class Passes {
 public:
  Passes(Replica& replica, std::int64_t batch, std::uint64_t seed)
      : replica_(replica), ids_(static_cast<std::size_t>(batch)) {
    DataDemand demand = data_demand(replica.graph());
    demand.target_kind = TargetKind::none;
    std::iota(ids_.begin(), ids_.end(), 0);
    for (const Shape& shape : demand.input_shapes) {
      values_.emplace_back(shape.with_batch(batch), DType::f32);
      pointers_.push_back(values_.back().as<float>().data());
    }
    std::vector<TensorView> views;
    for (Tensor& values : values_) views.push_back(values.view());
    make_synthetic_dataset(demand, batch, seed)->read(ids_, views, {});
  }

  void run(std::int64_t iteration) {
    replica_.executor(Mode::evaluate, static_cast<std::int64_t>(ids_.size()))
        .forward(pointers_, replica_.buffers(nullptr, nullptr),
                 {iteration, ids_, replica_.version()});
  }

 private:
  Replica& replica_;
  std::vector<std::int64_t> ids_;
  std::vector<Tensor> values_;
  std::vector<const float*> pointers_;
};

struct Measured {
  std::vector<double> passes;
  double wall_s = 0;
  double samples_per_s = 0;  // of the job
};

Measured measure(Passes& passes, std::int64_t own, const BenchStepOptions& options,
                 Communicator& comm) {
  Measured result;
  for (std::int64_t i = 0; i < options.warmup; ++i) passes.run(i);
  comm.barrier();
  const auto start = Clock::now();
  for (std::int64_t i = 0; i < options.steps; ++i) {
    const auto begin = Clock::now();
    passes.run(i);
    result.passes.push_back(seconds_since(begin));
  }
  result.wall_s = seconds_since(start);
  // Ranks do not wait for each other: their rates add up.
  result.samples_per_s = static_cast<double>(own * options.steps) / result.wall_s;
  comm.all_reduce(TensorView(std::span<double>(&result.samples_per_s, 1)), ReduceOp::sum);
  return result;
}

void print(const Measured& measured, const BenchStepOptions& options, const RunSpec& spec,
           int ranks) {
  const Spread spread = spread_of(measured.passes);
  if (options.json) {
    JsonObject json;
    json.set("name", spec.name)
        .set("ranks", ranks)
        .set("threads", spec.threads)
        .set("batch", spec.batch.global)
        .set("warmup_steps", options.warmup)
        .set("steps", options.steps)
        .set("samples_per_s", measured.samples_per_s)
        .set("wall_s", measured.wall_s)
        .set("latency_s", to_json(spread).set("p50", spread.median).set("p99", spread.p99))
        .set("peak_rss_bytes", peak_resident_memory())
        .set("versions", versions_line());
    std::puts(json.text().c_str());
    return;
  }
  std::puts(
      fmt::format("{:.2f} samples/s over {} passes of {} samples; a pass of rank 0: p50 "
                  "{:.2f} ms, p99 {:.2f} ms, min {:.2f} ms, max {:.2f} ms; peak memory {:.0f} "
                  "MB",
                  measured.samples_per_s, options.steps, spec.batch.global, 1e3 * spread.median,
                  1e3 * spread.p99, 1e3 * spread.min, 1e3 * spread.max,
                  static_cast<double>(peak_resident_memory()) / 1e6)
          .c_str());
}

}  // namespace

int run_bench_infer(const BenchStepOptions& options) {
  return run_job("bench infer", [&](Communicator& comm, Progress&) {
    Log log(comm.rank());
    RunConfig config = load_one_config(comm, options, log);
    Start start = start_job(config, std::nullopt, comm, log);
    const std::int64_t own = share_of(config.spec.batch.global, comm.rank(), comm.size()).count();
    require(config.spec.batch.global >= comm.size(), ErrorKind::usage,
            "batch.global = {} leaves some of {} ranks without a sample", config.spec.batch.global,
            comm.size());
    const auto seed = static_cast<std::uint64_t>(config.spec.seed);
    Replica replica(*config.graph, *start.device, seed, MemoryMode::planned,
                    backend_options(config.spec));
    const std::int64_t sizes[] = {own};
    replica.prepare(Mode::evaluate, sizes);
    replica.bind();
    Passes passes(replica, own, seed);
    const Measured measured = measure(passes, own, options, comm);
    if (comm.rank() == 0) print(measured, options, config.spec, comm.size());
    return 0;
  });
}

}  // namespace annulus
