// SPDX-License-Identifier: Apache-2.0
#include "train/run_plan.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "core/error.h"
#include "train/optimizer.h"

namespace annulus {
namespace {

// Does `work`; an error of it gets the place of a key.
template <class Work>
auto placed(const Value& config, std::string_view key, Work work) {
  try {
    return work();
  } catch (Error& error) {
    throw error.at(place_of(config, key));
  }
}

bool is_written(const std::vector<double>& numbers, const Shape& sample) {
  return numbers.size() <= 1 || (sample.rank() > 0 && std::ssize(numbers) == sample[0]);
}

void check_inputs(const DataSpec& data, const std::string& table, const Graph& graph,
                  const Value& config, Problems& problems) {
  const bool varies = data.augment.crop_padding > 0 || data.augment.flip;
  for (const ModelInput& input : graph.inputs()) {
    const auto check_length = [&](const char* key, const std::vector<double>& numbers) {
      if (is_written(numbers, input.shape)) return;
      problems.add(place_of(config, fmt::format("{}.{}", table, key)),
                   fmt::format("'{}' has {} numbers for the {} channels of input {} {}", key,
                               numbers.size(), input.shape[0], input.name, to_string(input.shape)));
    };
    check_length("mean", data.mean);
    check_length("std", data.std);
    if (varies && input.shape.rank() != 3) {
      problems.add(place_of(config, table + ".augment"),
                   fmt::format("'augment' varies images (C, H, W), not input {} {}", input.name,
                               to_string(input.shape)));
    }
  }
}

std::int64_t updates_of_run(const TrainSpec& train, std::int64_t steps_per_epoch) {
  if (train.steps > 0) return train.steps;
  std::int64_t total = 0;
  require(!__builtin_mul_overflow(train.epochs, steps_per_epoch, &total), ErrorKind::usage,
          "{} epochs of {} steps are more than 2^63 updates", train.epochs, steps_per_epoch);
  return total;
}

void check_batch_norm(const Graph& graph, std::span<const std::int64_t> sizes) {
  if (std::find(sizes.begin(), sizes.end(), 1) == sizes.end()) return;
  for (const Graph::Node& node : graph.nodes()) {
    const Shape& shape = graph.values()[static_cast<std::size_t>(node.inputs[0])].shape;
    require(
        node.kind != "batch_norm" || shape.elements_from(1) > 1, ErrorKind::usage,
        "layer {}: a shard of 1 sample gives batch normalisation one value a channel, which has no "
        "variance; use fewer batch.shards, or data.drop_last for a last batch that is too short",
        node.name);
  }
}

}  // namespace

void check_inputs(const RunSpec& spec, const Graph& graph, const Value& config,
                  Problems& problems) {
  if (spec.data.has_train) check_inputs(spec.data.train, "data.train", graph, config, problems);
  if (spec.data.has_test) check_inputs(spec.data.test, "data.test", graph, config, problems);
}

RunPlan plan_run(const RunSpec& spec, const Graph& graph, const Value& config,
                 std::int64_t samples) {
  const BatchPlan batches = placed(config, "batch.global", [&] {
    if (spec.batch.shards > spec.batch.global) {
      throw Error(ErrorKind::usage,
                  "a batch has at least one sample a shard: raise batch.global, or set "
                  "batch.shards below the number of ranks")
          .values(fmt::format("at most {} shards", spec.batch.global),
                  std::to_string(spec.batch.shards));
    }
    return BatchPlan(samples, spec.batch.global, spec.batch.shards, spec.data.drop_last);
  });
  placed(config, "batch.global", [&] {
    check_batch_norm(graph, batches.shard_sizes({0, batches.shards()}));
  });
  const std::int64_t updates = placed(config, "train.epochs", [&] {
    return updates_of_run(spec.train, batches.steps_per_epoch());
  });
  const Schedule schedule = placed(config, "optimizer.schedule", [&] {
    return Schedule(spec.optimizer.schedule, base_lr(spec.optimizer, spec.batch.global), updates,
                    batches.steps_per_epoch());
  });
  return {batches, updates, schedule};
}

std::vector<std::string> doubts(const RunPlan& plan, std::int64_t ranks) {
  const std::int64_t shards = plan.batches.shards();
  if (ranks <= shards) return {};
  return {fmt::format("{} of {} ranks have no work: batch.shards is {}", ranks - shards, ranks,
                      shards)};
}

}  // namespace annulus
