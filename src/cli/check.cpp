// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>

#include "cli/commands.h"
#include "cli/run_config.h"
#include "core/host_memory.h"
#include "core/placement.h"
#include "io/json.h"
#include "train/memory_estimate.h"
#include "train/run_plan.h"
#include "train/session.h"

namespace annulus {
namespace {

// All that `check` finds out about one config.
struct Findings {
  std::int64_t samples = 0;  // 0: not known
  std::int64_t steps_per_epoch = 0;
  std::int64_t updates = 0;
  std::int64_t allreduce_bytes = 0;
  MemoryEstimate memory;
  std::vector<std::pair<std::int64_t, double>> rates;  // (update, learning rate)
};

// The number of training samples: the file's where there is one, else what the config says of it.
std::int64_t count_samples(const RunConfig& config, std::vector<std::string>& warnings) {
  const RunSpec& spec = config.spec;
  std::error_code error;
  if (spec.data.synthetic || std::filesystem::exists(spec.data.train.file, error)) {
    return open_data(spec, *config.graph, true).train->size();
  }
  warnings.push_back(fmt::format(
      "{}; {}",
      spec.data.has_train ? spec.data.train.file + ": no such data file"
                          : "no [data.train], without which nothing can be trained",
      spec.data.samples > 0 ? fmt::format("planned with data.samples = {}", spec.data.samples)
                            : "set data.samples to plan without it"));
  return spec.data.samples;
}

std::vector<std::pair<std::int64_t, double>> learning_rates(const RunPlan& plan) {
  constexpr std::int64_t points = 10;
  std::vector<std::pair<std::int64_t, double>> rates;
  for (std::int64_t i = 0; i <= points; ++i) {
    const std::int64_t update = share_of(plan.updates - 1, i, points).begin;
    if (rates.empty() || rates.back().first < update)
      rates.emplace_back(update, plan.schedule.lr(update));
  }
  return rates;
}

// What one rank needs on this machine's processor. The last rank's share of the shards is the
// largest.
MemoryEstimate memory_of_rank(const RunSpec& spec, const Graph& graph, const BatchPlan& batches,
                              std::int64_t ranks) {
  Placement placement;
  placement.threads = static_cast<int>(spec.threads > 0 ? spec.threads : allowed_cores().size());
  apply(placement);
  const auto device = make_device(DeviceKind::cpu, placement);
  const Span64 own = share_of(batches.shards(), ranks - 1, ranks);
  Replica replica(graph, *device, static_cast<std::uint64_t>(spec.seed), MemoryMode::planned,
                  backend_options(spec));
  replica.choose_layouts((batches.global() + batches.shards() - 1) / batches.shards());
  replica.prepare(Mode::train, batches.shard_sizes(own));
  if (spec.data.has_test) {
    const std::int64_t chunk[] = {evaluation_chunk(spec.batch)};
    replica.prepare(Mode::evaluate, chunk);
  }
  return estimate_memory(spec, replica, batches, own, ranks);
}

// What will run here or elsewhere, but is worth a second look.
void warn(const RunSpec& spec, const RunPlan& plan, const MemoryEstimate& memory,
          std::int64_t ranks, std::vector<std::string>& warnings) {
  for (const std::string& doubt : doubts(plan, ranks)) warnings.push_back(doubt);
  std::string reason;
  if (spec.device == "cuda" && !cuda_available(reason)) {
    warnings.push_back("device = \"cuda\" is not to be had on this machine: " + reason +
                       "; what is said of memory is that of the CPU");
  }
  try {
    require_memory(memory, 1, available_memory());
  } catch (const Error& error) {
    warnings.push_back(fmt::format("on this machine: {}", error.text()));
  }
}

Findings examine(RunConfig& config, std::int64_t ranks, std::vector<std::string>& warnings) {
  RunSpec& spec = config.spec;
  const Graph& graph = *config.graph;
  Findings findings;
  if (spec.batch.shards == 0) spec.batch.shards = ranks;
  findings.samples = count_samples(config, warnings);
  const std::int64_t planned = findings.samples > 0 ? findings.samples : spec.batch.global;
  const RunPlan plan = plan_run(spec, graph, config.value, planned);
  findings.updates = plan.updates;
  if (findings.samples > 0) {
    findings.steps_per_epoch = plan.batches.steps_per_epoch();
    findings.rates = learning_rates(plan);
  }
  const StepRecord record(graph.statistic_elements(), plan.batches.shards());
  findings.allreduce_bytes = ranks == 1 ? 0
                                        : (graph.flat_elements() + record.elements()) *
                                              static_cast<std::int64_t>(sizeof(float));
  findings.memory = memory_of_rank(spec, graph, plan.batches, ranks);
  warn(spec, plan, findings.memory, ranks, warnings);
  return findings;
}

std::int64_t parameters_of(const Graph& graph, const Graph::Node& node) {
  std::int64_t count = 0;
  for (int parameter : node.parameters) {
    count += graph.parameters()[static_cast<std::size_t>(parameter)].elements;
  }
  return count;
}

const Shape& output_shape(const Graph& graph, const Graph::Node& node) {
  return graph.values()[static_cast<std::size_t>(node.output)].shape;
}

JsonObject layer_json(const Graph& graph, const Graph::Node& node) {
  const Shape& shape = output_shape(graph, node);
  JsonObject json;
  json.set("name", node.name)
      .set("kind", node.kind)
      .set("output", std::span<const std::int64_t>(shape.begin(), shape.rank()))
      .set("parameters", parameters_of(graph, node))
      .set("macs", node.layer->macs());
  return json;
}

JsonObject to_json(const RunConfig& config, const Findings& findings, std::int64_t ranks,
                   const std::vector<std::string>& warnings) {
  const Graph& graph = *config.graph;
  std::vector<JsonObject> layers;
  for (const Graph::Node& node : graph.nodes()) layers.push_back(layer_json(graph, node));
  std::vector<JsonObject> rates;
  for (const auto& [update, rate] : findings.rates)
    rates.emplace_back().set("update", update).set("lr", rate);
  JsonObject memory;
  memory.set("process", findings.memory.process)
      .set("weights", findings.memory.weights)
      .set("values", findings.memory.values)
      .set("moments", findings.memory.moments)
      .set("gradients", findings.memory.gradients)
      .set("batches", findings.memory.batches);
  JsonObject json;
  json.set("name", config.spec.name)
      .set("ranks", ranks)
      .set("shards", config.spec.batch.shards)
      .set("parameters", graph.parameter_elements())
      .set("macs_per_sample", graph.macs_per_sample())
      .set("memory_per_rank_bytes", findings.memory.total())
      .set("memory_parts_bytes", memory)
      .set("allreduce_bytes_per_step", findings.allreduce_bytes)
      .set("updates", findings.updates);
  if (findings.samples > 0) {
    json.set("samples", findings.samples).set("steps_per_epoch", findings.steps_per_epoch);
  } else {
    json.set_null("samples").set_null("steps_per_epoch");
  }
  json.set("learning_rate", std::span<const JsonObject>(rates))
      .set("layers", std::span<const JsonObject>(layers))
      .set("warnings", std::span<const std::string>(warnings));
  return json;
}

void print_text(const RunConfig& config, const Findings& findings, std::int64_t ranks) {
  constexpr double megabyte = 1e6;
  const Graph& graph = *config.graph;
  std::puts(
      "layer                        kind             output            parameters           MACs");
  for (const Graph::Node& node : graph.nodes()) {
    std::puts(fmt::format("{:<28} {:<16} {:<16} {:>11} {:>14}", node.name, node.kind,
                          to_string(output_shape(graph, node)), parameters_of(graph, node),
                          node.layer->macs())
                  .c_str());
  }
  std::puts(fmt::format(
                "parameters            {}\nMACs a sample         {}\nranks, shards         {}, {}\n"
                "memory a rank         {:.0f} MB\nall-reduce a step     {:.1f} MB\n"
                "updates               {}",
                graph.parameter_elements(), graph.macs_per_sample(), ranks,
                config.spec.batch.shards, static_cast<double>(findings.memory.total()) / megabyte,
                static_cast<double>(findings.allreduce_bytes) / megabyte, findings.updates)
                .c_str());
  if (findings.samples == 0) return;
  std::puts(fmt::format("samples, steps/epoch  {}, {}", findings.samples, findings.steps_per_epoch)
                .c_str());
  std::string rates = "learning rate        ";
  for (const auto& [update, rate] : findings.rates)
    rates += fmt::format(" {}: {:.4g} ", update, rate);
  std::puts(rates.c_str());
}

}  // namespace

int run_check(const CheckOptions& options) {
  std::vector<JsonObject> found;
  for (Value& value : read_configs(options)) {
    std::vector<std::string> warnings;
    RunConfig config = check_config(std::move(value), warnings);
    const Findings findings = examine(config, options.ranks, warnings);
    for (const std::string& warning : warnings) {
      std::fputs(fmt::format("annulus: warning: {}\n", warning).c_str(), stderr);
    }
    if (options.json) {
      found.push_back(to_json(config, findings, options.ranks, warnings));
    } else {
      print_text(config, findings, options.ranks);
    }
  }
  if (found.size() == 1) std::puts(found.front().text().c_str());
  if (found.size() > 1) std::puts(to_text(found).c_str());
  return 0;
}

}  // namespace annulus
