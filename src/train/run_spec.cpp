// SPDX-License-Identifier: Apache-2.0
#include "train/run_spec.h"

#include <algorithm>
#include <array>

#include "layers/layer.h"

namespace annulus {
namespace {

constexpr double most_samples = 1 << 30;  // in a batch: their elements are still counted exactly

Schema describe(BatchSpec& spec) {
  Schema schema;
  schema.key("global", &spec.global, "samples that one update sees, whatever the number of ranks")
      .at_least(1)
      .at_most(most_samples)
      .unusual_above(1 << 20)
      .required()
      .also_called({"size", "batch_size"});
  schema
      .key("shards", &spec.shards,
           "parts of a batch, the unit of arithmetic: the result depends on them and not on the "
           "number of ranks; 0: the number of ranks")
      .at_least(0)
      .at_most(1 << 16)
      .unusual_above(4096);
  schema
      .key("evaluate", &spec.evaluate,
           "samples that evaluation computes at a time; 0: the size of a shard")
      .at_least(0)
      .at_most(most_samples);
  return schema;
}

Schema describe(TrainSpec& spec) {
  Schema schema;
  schema.key("epochs", &spec.epochs, "passes over the training data; this or steps")
      .at_least(1)
      .unusual_above(1e5)
      .also_called({"max_epochs"});
  schema.key("steps", &spec.steps, "updates; this or epochs")
      .at_least(1)
      .unusual_above(1e9)
      .also_called({"max_steps", "iterations"});
  schema.key("log_every", &spec.log_every, "updates between two lines of metrics").at_least(1);
  schema
      .key("save_every", &spec.save_every,
           "updates between two checkpoints; 0: only at the end of the run")
      .at_least(0);
  schema.key("save_every_epochs", &spec.save_every_epochs, "epochs between two checkpoints; 0: off")
      .at_least(0);
  schema
      .key("evaluate_every", &spec.evaluate_every,
           "updates between two evaluations; 0: only at the end of the run")
      .at_least(0);
  schema
      .key("evaluate_every_epochs", &spec.evaluate_every_epochs,
           "epochs between two evaluations; 0: off")
      .at_least(0);
  schema
      .key("resume", &spec.resume,
           "go on from the last checkpoint of the run directory: if there is one (auto), or an "
           "error where there is none (required)")
      .one_of({"off", "auto", "required"});
  schema.key("max_seconds", &spec.max_seconds, "save and stop after this time; 0: no limit")
      .at_least(0);
  schema
      .key("profile", &spec.profile,
           "steps, after the first two, of which each rank writes a Chrome trace; 0: none")
      .at_least(0)
      .at_most(1000);
  schema.key("debug_memory", &spec.debug_memory,
             "give each tensor memory of its own, poisoned at the end of its life");
  return schema;
}

Schema describe(CpuSpec& spec) {
  Schema schema;
  schema
      .key(
          "winograd", &spec.winograd,
          "3x3 convolutions by Winograd's algorithm where it is faster, with another rounding than "
          "the direct form; off: never")
      .one_of({"auto", "off"});
  return schema;
}

// The checks of what keys mean together. They look at what is written, so that a key with a wrong
// value, which is a problem already, is not one more here.
class CrossCheck {
 public:
  CrossCheck(const Value& config, RunSpec& spec, Problems& problems)
      : config_(config), spec_(spec), problems_(problems) {}

  void run() {
    check_name();
    check_length();
    check_shards();
    check_data();
    check_evaluation();
    const Value* optimizer = config_.find("optimizer");
    check(spec_.optimizer, optimizer != nullptr ? *optimizer : Value{}, problems_);
  }

 private:
  bool has(std::string_view path) const { return config_.find_path(path) != nullptr; }
  void wrong(std::string_view path, std::string message) {
    problems_.add(place_of(config_, path), std::move(message));
  }

  void check_name() {
    // It becomes a part of the run directory's name.
    constexpr std::size_t longest = 230;  // with the date it still fits in the 255 bytes of a name
    const std::string& name = spec_.name;
    const bool plain = std::none_of(name.begin(), name.end(), [](char c) {
      const auto code = static_cast<unsigned char>(c);
      return code < 0x20 || code == 0x7F || c == '/';
    });
    if (name.empty() || name == "." || name == ".." || !plain || name.size() > longest) {
      wrong("name", fmt::format("'name' must be a name for a directory of at most {} bytes, not {}",
                                longest, to_string(Value{name, {}})));
    }
  }

  void check_length() {
    if (has("train.epochs") && has("train.steps")) {
      wrong("train.steps", "train.epochs and train.steps are both given; keep one");
    } else if (!has("train.epochs") && !has("train.steps")) {
      wrong("train", "missing key 'epochs' or 'steps' in [train]");
    }
  }

  void check_shards() {
    if (spec_.batch.global > 0 && spec_.batch.shards > spec_.batch.global) {
      wrong("batch.shards", fmt::format("batch.shards {} > batch.global {}", spec_.batch.shards,
                                        spec_.batch.global));
    }
  }

  void check_data() {
    constexpr std::int64_t batches = 16;
    DataOptions& data = spec_.data;
    if (!data.has_train && !data.synthetic && data.samples == 0)
      wrong("data", "missing [data.train]; data.synthetic = true trains on random data");
    if (!data.synthetic || data.samples > 0 || spec_.batch.global <= 0) return;
    data.samples = batches * spec_.batch.global;
    problems_.warn(place_of(config_, "data.synthetic"),
                   fmt::format("data.samples is not given: {} synthetic samples, {} batches",
                               data.samples, batches));
  }

  void check_evaluation() {
    if (spec_.data.has_test || spec_.data.synthetic) return;
    for (const char* key : {"train.evaluate_every", "train.evaluate_every_epochs"}) {
      if (has(key)) {
        problems_.warn(place_of(config_, key),
                       fmt::format("{} has no effect without [data.test]", key));
      }
    }
  }

  const Value& config_;
  RunSpec& spec_;
  Problems& problems_;
};

}  // namespace

Schema describe(RunSpec& spec) {
  Schema schema;
  schema.key("name", &spec.name, "part of the run directory's name");
  schema.key("seed", &spec.seed, "of all random numbers").at_least(0);
  schema.key("device", &spec.device, "what computes; auto: cuda where there is a GPU for each rank")
      .one_of({"auto", "cpu", "cuda"});
  schema.key("precision", &spec.precision, "arithmetic of the layers").one_of({"fp32"});
  schema.key("deterministic", &spec.deterministic, "the same bits in every run");
  schema
      .key("threads", &spec.threads,
           "compute threads of a rank; 0: its share of the node's allowed cores")
      .at_least(0)
      .at_most(1024);
  schema.key("placement", &spec.placement, "off: leave ranks where the launcher put them")
      .one_of({"auto", "off"});
  schema.table("data", describe(spec.data), "data sets");
  schema.table("batch", describe(spec.batch), "how samples become batches and shards").required();
  schema.table("optimizer", describe(spec.optimizer), "how gradients become new weights");
  schema.table("train", describe(spec.train), "how long, and what is done on the way");
  schema.table("model", describe(spec.model), "the network").required();
  schema.table("loss", describe(spec.model.loss), "what is minimised, and what is reported");
  schema.table("comm", describe(spec.comm), "how ranks talk");
  schema.table("cpu", describe(spec.cpu), "how the CPU backend computes");
  return schema;
}

BackendOptions backend_options(const RunSpec& spec) {
  return {.winograd = spec.cpu.winograd == "auto"};
}

std::vector<DocumentedKey> all_keys() {
  RunSpec spec;
  LayerSpec any_kind;
  std::vector<DocumentedKey> all = documented_keys(describe(spec));
  const auto append = [&](const Schema& schema, const std::string& path) {
    const std::vector<DocumentedKey> keys = documented_keys(schema, path);
    all.insert(all.end(), keys.begin(), keys.end());
  };
  append(describe(any_kind), "model.layers");
  for (const LayerKind& kind : layer_kinds()) {
    const std::unique_ptr<Layer> layer = kind.make();
    append(layer->describe(), "model.layers." + kind.key);
  }
  return all;
}

void let_sets_win(Value& config) {
  constexpr std::array<std::array<const char*, 3>, 4> pairs = {{
      {"train", "steps", "epochs"},
      {"optimizer.schedule", "warmup", "warmup_epochs"},
      {"optimizer.schedule", "every", "every_epochs"},
      {"optimizer.schedule", "milestones", "milestones_epochs"},
  }};
  const auto is_set = [](const Value& value) { return value.where.file.rfind("--set ", 0) == 0; };
  for (const auto& [path, one, other] : pairs) {
    auto* table = const_cast<Value*>(config.find_path(path));
    if (table == nullptr || table->find(one) == nullptr || table->find(other) == nullptr) continue;
    const bool one_set = is_set(*table->find(one));
    if (one_set == is_set(*table->find(other))) continue;
    table->erase(one_set ? other : one);
  }
}

void read_run_spec(const Value& config, RunSpec& spec, Problems& problems) {
  describe(spec).fill(config, "", problems);
  spec.model.where = place_of(config, "model");
  spec.model.loss.where = place_of(config, "loss");
  CrossCheck(config, spec, problems).run();
}

}  // namespace annulus
