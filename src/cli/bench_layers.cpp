// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/job.h"
#include "cli/run_config.h"
#include "cli/spread.h"
#include "cli/start.h"
#include "cli/version.h"
#include "io/json.h"
#include "train/session.h"
#include "train/step_profile.h"

namespace annulus {
namespace {

// Time of one pass of one layer, and what it does in that time.
struct LayerPass {
  std::string layer;
  std::string kind;
  std::string pass;
  std::string implementation;
  double seconds = 0;      // of a step: the median over steps of the sum over this rank's shards
  std::int64_t flops = 0;  // of a step, two a multiply-add
  std::int64_t bytes = 0;  // that the pass cannot do without reading or writing
  double flops_per_s() const { return static_cast<double>(flops) / seconds; }
  double bytes_per_s() const { return static_cast<double>(bytes) / seconds; }
};

using Key = std::pair<std::string, std::string>;  // layer, pass

// The steps of a trace end with a range "step": what came before it since the last one is its own.
std::map<Key, std::vector<double>> seconds_by_pass(const Trace& trace) {
  std::map<Key, std::vector<double>> result;
  std::map<Key, double> step;
  for (const Trace::Event& event : trace.events(Trace::trainer)) {
    if (event.name == "step") {
      for (const auto& [key, seconds] : step) result[key].push_back(seconds);
      step.clear();
      continue;
    }
    step[{std::string(event.name), std::string(event.kind)}] +=
        std::chrono::duration<double>(event.end - event.begin).count();
  }
  return result;
}

std::int64_t elements_of(const Graph& graph, int value) {
  return graph.values()[static_cast<std::size_t>(value)].shape.elements();
}

// What a step does beside its layers.
constexpr const char* loader[] = {"loader", "wait"};
constexpr const char* loss[] = {"loss", "forward"};
constexpr const char* waiting[] = {"gradients", "wait"};
constexpr const char* optimizer[] = {"optimizer", "update"};

// Work of a forward pass over one sample; backward does it twice where there are parameters, once
// where there are none.
struct Work {
  std::int64_t flops = 0;
  std::int64_t bytes = 0;
};

Work forward_work(const Graph& graph, const Graph::Node& node) {
  Work work;
  work.flops = 2 * node.layer->macs();
  std::int64_t elements = elements_of(graph, node.output);
  for (int input : node.inputs) elements += elements_of(graph, input);
  work.bytes = elements * static_cast<std::int64_t>(sizeof(float));
  return work;
}

std::vector<LayerPass> measure(const Session& session, const Trace& trace,
                               const std::vector<std::string>& implementations,
                               std::int64_t samples) {
  const auto seconds = seconds_by_pass(trace);
  const Graph& graph = session.graph();
  std::vector<LayerPass> passes;
  for (const char* pass : {"forward", "backward"}) {
    for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
      const Graph::Node& node = graph.nodes()[n];
      const auto found = seconds.find({node.name, pass});
      if (found == seconds.end()) continue;
      const bool backward = pass == std::string_view("backward");
      const std::int64_t times = backward && !node.parameters.empty() ? 2 : 1;
      const Work work = forward_work(graph, node);
      passes.push_back({node.name, node.kind, pass, implementations[n],
                        spread_of(found->second).median, times * work.flops * samples,
                        times * work.bytes * samples});
    }
  }
  for (const char* const* other : {loader, loss, waiting, optimizer}) {
    const auto found = seconds.find({other[0], other[1]});
    if (found == seconds.end()) continue;
    passes.push_back({other[0], "", other[1], "", spread_of(found->second).median, 0, 0});
  }
  return passes;
}

void print_table(const std::vector<LayerPass>& passes, double step) {
  std::puts(
      "layer                        kind             pass            ms  share  GFLOP/s    GB/s  "
      "implementation");
  for (const LayerPass& pass : passes) {
    std::puts(fmt::format("{:<28} {:<16} {:<9} {:>8.3f} {:>5.1f}% {:>8.1f} {:>7.1f}  {}",
                          pass.layer, pass.kind, pass.pass, 1e3 * pass.seconds,
                          100 * pass.seconds / step, 1e-9 * pass.flops_per_s(),
                          1e-9 * pass.bytes_per_s(), pass.implementation)
                  .c_str());
  }
}

void print_json(const std::vector<LayerPass>& passes, double step, const RunSpec& spec) {
  std::vector<JsonObject> lines;
  for (const LayerPass& pass : passes) {
    lines.emplace_back()
        .set("layer", pass.layer)
        .set("kind", pass.kind)
        .set("pass", pass.pass)
        .set("time_s", pass.seconds)
        .set("share", pass.seconds / step)
        .set("flops_per_s", pass.flops_per_s())
        .set("bytes_per_s", pass.bytes_per_s())
        .set("implementation", pass.implementation);
  }
  JsonObject json;
  json.set("name", spec.name)
      .set("threads", spec.threads)
      .set("batch", spec.batch.global)
      .set("step_s", step)
      .set("layers", std::span<const JsonObject>(lines))
      .set("versions", versions_line());
  std::puts(json.text().c_str());
}

std::vector<std::string> implementations_of(Session& session) {
  const std::vector<std::int64_t> sizes = session.plan().shard_sizes({0, session.plan().shards()});
  std::vector<std::string> names;
  for (const auto& node : session.replica().executor(Mode::train, sizes.back()).report())
    names.push_back(node.implementation);
  return names;
}

}  // namespace

int run_bench_layers(const BenchStepOptions& options) {
  return run_job("bench layers", [&](Communicator& comm, Progress& progress) {
    Log log(comm.rank());
    RunConfig config = load_one_config(comm, options, log);
    config.spec.data.has_test = false;
    Start start = start_job(config, std::nullopt, comm, log);
    DataSets data = open_data(config.spec, *config.graph, true, comm, progress);
    const RunPlan plan = agree_on_plan(config, data, comm, log);
    Session session(config.spec, *config.graph, std::move(data), plan, comm, *start.device,
                    progress);
    require(session.own_shards() > 0 || comm.rank() > 0, ErrorKind::usage,
            "rank 0 has no shard to measure: use fewer ranks, or more batch.shards");
    StepProfile profile(session, options.warmup, options.steps);
    session.start_at(0);
    progress.enter(Phase::train);
    for (std::int64_t i = 0; i < options.warmup + options.steps; ++i) {
      profile.before_step(i);
      session.step().run(i, i, false);
    }
    profile.stop();
    if (comm.rank() != 0) return 0;
    const auto seconds = seconds_by_pass(profile.trace());
    const auto passes =
        measure(session, profile.trace(), implementations_of(session), session.own_samples(0));
    double step = 0;
    for (const auto& [key, times] : seconds) step += spread_of(times).median;
    if (options.json) {
      print_json(passes, step, config.spec);
    } else {
      print_table(passes, step);
    }
    return 0;
  });
}

}  // namespace annulus
