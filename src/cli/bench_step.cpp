// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "cli/commands.h"
#include "cli/job.h"
#include "cli/run_config.h"
#include "cli/spread.h"
#include "cli/start.h"
#include "cli/version.h"
#include "core/host_memory.h"
#include "io/json.h"
#include "train/session.h"

namespace annulus {
namespace {

struct Part {
  const char* name;
  double StepTimes::*value;
};

constexpr Part parts[] = {
    {"step_s", &StepTimes::step_s},       {"data_s", &StepTimes::data_s},
    {"forward_s", &StepTimes::forward_s}, {"backward_s", &StepTimes::backward_s},
    {"wait_s", &StepTimes::wait_s},       {"update_s", &StepTimes::update_s},
};

std::vector<double> values_of(const std::vector<StepTimes>& times, const Part& part) {
  std::vector<double> values;
  values.reserve(times.size());
  for (const StepTimes& step : times) values.push_back(step.*part.value);
  return values;
}

// What one measurement gives on this rank.
struct Measurement {
  std::vector<StepTimes> times;
  double wall_s = 0;
  std::int64_t samples = 0;  // of the job
};

Measurement measure(Session& session, std::int64_t warmup, std::int64_t steps) {
  session.start_at(0);
  session.progress().enter(Phase::train);
  Measurement measurement;
  measurement.times.reserve(static_cast<std::size_t>(steps));
  std::int64_t iteration = 0;
  for (; iteration < warmup; ++iteration) session.step().run(iteration, iteration, false);
  session.comm().barrier();
  const auto start = std::chrono::steady_clock::now();
  for (; iteration < warmup + steps; ++iteration) {
    measurement.times.push_back(session.step().run(iteration, iteration, false).times);
    measurement.samples += session.plan().batch_size(iteration);
  }
  measurement.wall_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return measurement;
}

// Every rank's time of its own work in a step: the slowest one sets the pace of all.
std::vector<double> work_by_rank(const Measurement& measurement, Communicator& comm) {
  std::vector<double> work;
  for (const StepTimes& step : measurement.times) work.push_back(step.step_s - step.wait_s);
  double mine = spread_of(work).median;
  std::vector<double> all(static_cast<std::size_t>(comm.size()));
  comm.all_gather(TensorView(std::span<double>(&mine, 1)), TensorView(std::span<double>(all)));
  return all;
}

JsonObject to_json(const Measurement& measurement, const std::vector<double>& work,
                   std::int64_t warmup, const RunSpec& spec, const Communicator& comm) {
  JsonObject json;
  json.set("name", spec.name)
      .set("ranks", comm.size())
      .set("threads", spec.threads)
      .set("batch", spec.batch.global)
      .set("shards", spec.batch.shards)
      .set("warmup_steps", warmup)
      .set("steps", static_cast<std::int64_t>(measurement.times.size()));
  for (const Part& part : parts) {
    json.set(part.name, to_json(spread_of(values_of(measurement.times, part))));
  }
  json.set("samples_per_s", static_cast<double>(measurement.samples) / measurement.wall_s)
      .set("wall_s", measurement.wall_s)
      .set("work_by_rank_s", std::span<const double>(work))
      .set("slowest_rank", std::max_element(work.begin(), work.end()) - work.begin())
      .set("peak_rss_bytes", peak_resident_memory())
      .set("versions", versions_line());
  return json;
}

void print_table(const Measurement& measurement, const std::vector<double>& work) {
  std::puts("part         median        min        max  share");
  const double whole = spread_of(values_of(measurement.times, parts[0])).median;
  for (const Part& part : parts) {
    const Spread spread = spread_of(values_of(measurement.times, part));
    std::puts(fmt::format("{:<10} {:>7.2f} ms {:>7.2f} ms {:>7.2f} ms {:>5.1f}%", part.name,
                          1e3 * spread.median, 1e3 * spread.min, 1e3 * spread.max,
                          100 * spread.median / whole)
                  .c_str());
  }
  const auto slowest = std::max_element(work.begin(), work.end());
  std::puts(fmt::format(
                "{:.2f} samples/s over {} steps; slowest rank {} with {:.2f} ms of own work; peak "
                "memory {:.0f} MB",
                static_cast<double>(measurement.samples) / measurement.wall_s,
                measurement.times.size(), slowest - work.begin(), 1e3 * *slowest,
                static_cast<double>(peak_resident_memory()) / 1e6)
                .c_str());
}

}  // namespace

int run_bench_step(const BenchStepOptions& options) {
  return run_job("bench step", [&](Communicator& comm, Progress& progress) {
    Log log(comm.rank());
    RunConfig config = load_one_config(comm, options, log);
    config.spec.data.has_test = false;  // a step needs no evaluation
    Start start = start_job(config, std::nullopt, comm, log);
    DataSets data = open_data(config.spec, *config.graph, true, comm, progress);
    const RunPlan plan = agree_on_plan(config, data, comm, log);
    Session session(config.spec, *config.graph, std::move(data), plan, comm, *start.device,
                    progress);
    const Measurement measurement = measure(session, options.warmup, options.steps);
    const std::vector<double> work = work_by_rank(measurement, comm);
    if (comm.rank() != 0) return 0;
    if (options.json) {
      std::puts(to_json(measurement, work, options.warmup, config.spec, comm).text().c_str());
    } else {
      print_table(measurement, work);
    }
    return 0;
  });
}

}  // namespace annulus
