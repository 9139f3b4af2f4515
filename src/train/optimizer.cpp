// SPDX-License-Identifier: Apache-2.0
#include "train/optimizer.h"

#include <algorithm>

#include "core/error.h"
#include "train/flat_optimizer.h"

namespace annulus {
namespace {

struct OptimizerKind {
  std::string name;
  std::vector<std::string> keys;  // those that no other kind reads
  std::unique_ptr<Optimizer> (*make)(const OptimizerSetup& setup);
  std::int64_t (*moments)(const OptimizerSpec& spec);
};

std::vector<OptimizerKind> optimizer_kinds() {
  return {{"sgd",
           {"momentum", "nesterov"},
           make_sgd,
           [](const OptimizerSpec& spec) -> std::int64_t { return spec.momentum > 0 ? 1 : 0; }},
          {"adamw",
           {"beta1", "beta2", "epsilon"},
           make_adamw,
           [](const OptimizerSpec&) -> std::int64_t { return 2; }}};
}

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const OptimizerKind& kind : optimizer_kinds()) names.push_back(kind.name);
  return names;
}

void warn_of_unused(const OptimizerSpec& spec, const Value& table, Problems& problems) {
  for (const OptimizerKind& kind : optimizer_kinds()) {
    if (kind.name == spec.kind) continue;
    for (const std::string& key : kind.keys) {
      if (table.find(key) == nullptr) continue;
      problems.warn(place_of(table, key),
                    fmt::format("optimizer.{} has no effect with kind \"{}\"", key, spec.kind));
    }
  }
}

}  // namespace

Schema describe(OptimizerSpec& spec) {
  Schema schema;
  schema.key("kind", &spec.kind, "update rule").one_of(kind_names());
  schema.key("lr", &spec.lr, "learning rate, before scaling and schedule")
      .above(0)
      .unusual_above(1000)
      .also_called({"learning_rate"});
  schema.key("lr_scale", &spec.lr_scale, "linear: lr times batch.global / lr_base_batch")
      .one_of({"none", "linear"});
  schema.key("lr_base_batch", &spec.lr_base_batch, "the global batch that lr is meant for")
      .at_least(1);
  schema.key("momentum", &spec.momentum, "sgd: share of the velocity that stays")
      .at_least(0)
      .below(1);
  schema.key("nesterov", &spec.nesterov, "sgd: look ahead along the velocity");
  schema.key("beta1", &spec.beta1, "adamw: share of the first moment that stays")
      .at_least(0)
      .below(1);
  schema.key("beta2", &spec.beta2, "adamw: share of the second moment that stays")
      .at_least(0)
      .below(1);
  schema.key("epsilon", &spec.epsilon, "adamw: added to the root of the second moment").above(0);
  schema
      .key("weight_decay", &spec.weight_decay,
           "decay of weights: added to the gradient (sgd), apart from it (adamw)")
      .at_least(0)
      .unusual_above(1);
  schema.key("decay_all", &spec.decay_all, "decay biases and norm parameters too");
  schema.key("clip_norm", &spec.clip_norm, "largest norm of the whole gradient; 0: no limit")
      .at_least(0);
  schema.key("clip_value", &spec.clip_value, "largest size of a gradient's element; 0: no limit")
      .at_least(0);
  schema.table("schedule", describe(spec.schedule), "how the learning rate changes");
  return schema;
}

void check(const OptimizerSpec& spec, const Value& table, Problems& problems) {
  if (spec.kind == "sgd" && spec.nesterov && spec.momentum == 0) {
    problems.add(place_of(table, "nesterov"),
                 "optimizer.nesterov needs optimizer.momentum above 0");
  }
  if (spec.lr_scale == "none" && table.find("lr_base_batch") != nullptr) {
    problems.warn(place_of(table, "lr_base_batch"),
                  "optimizer.lr_base_batch has no effect with lr_scale \"none\"");
  }
  warn_of_unused(spec, table, problems);
  const Value* schedule = table.find("schedule");
  check(spec.schedule, schedule != nullptr ? *schedule : Value{}, problems);
}

double base_lr(const OptimizerSpec& spec, std::int64_t global_batch) {
  if (spec.lr_scale != "linear") return spec.lr;
  return spec.lr * static_cast<double>(global_batch) / static_cast<double>(spec.lr_base_batch);
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerSpec& spec,
                                          std::span<const Graph::Parameter> parameters,
                                          const LayoutOf& layout_of, DeviceContext& device) {
  for (const OptimizerKind& kind : optimizer_kinds()) {
    if (kind.name == spec.kind) return kind.make({spec, parameters, layout_of, device});
  }
  fail(ErrorKind::usage, "optimizer.kind: unknown \"{}\"", spec.kind);
}

std::int64_t moments_of(const OptimizerSpec& spec) {
  for (const OptimizerKind& kind : optimizer_kinds()) {
    if (kind.name == spec.kind) return kind.moments(spec);
  }
  return 0;
}

std::vector<DecayRange> decay_ranges(std::span<const Graph::Parameter> parameters,
                                     double weight_decay, bool decay_all) {
  std::vector<DecayRange> ranges;
  std::int64_t end = 0;
  for (const Graph::Parameter& parameter : parameters) {
    require_equal(end, parameter.offset, "offset of a parameter");
    end += std::max(parameter.room, parameter.elements);
    const bool decays = decay_all || parameter.spec.decay;
    const float decay = decays ? static_cast<float>(weight_decay) : 0.0F;
    if (!ranges.empty() && ranges.back().decay == decay) {
      ranges.back().end = end;
    } else {
      ranges.push_back({parameter.offset, end, decay});
    }
  }
  return ranges;
}

}  // namespace annulus
