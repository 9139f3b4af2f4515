// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "config/config.h"
#include "core/error.h"
#include "layers/layer.h"
#include "train/run_spec.h"

namespace annulus {
namespace {

using Lines = std::vector<std::string>;

struct Reading {
  RunSpec spec;
  Lines errors;  // a line each
  Lines warnings;
};

Lines lines_of(const std::string& text) {
  Lines lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

Reading read(const std::string& text, const Lines& sets = {}) {
  Reading reading;
  Problems problems;
  read_run_spec(parse_config(text, "exp.toml", sets), reading.spec, problems);
  reading.warnings = problems.warnings();
  try {
    problems.throw_if_any();
  } catch (const Error& error) {
    CHECK(error.exit_code() == 2);
    reading.errors = lines_of(error.what());
  }
  return reading;
}

// A config with nothing wrong, of which a test changes one thing.
const char* const good = R"(name = "tiny"
[data]
samples = 100
[batch]
global = 8
[train]
epochs = 2
[model]
input = [4]
classes = 3
layers = [{ linear = 3 }]
)";

Lines errors_with(const std::string& set) {
  return read(good, {set}).errors;
}

// Whether a set value is refused, with a message that starts so and names the value.
void check_refused(const std::string& key, const std::string& value, const std::string& rule) {
  CAPTURE(key);
  CAPTURE(value);
  const std::string name = key.substr(key.rfind('.') + 1);
  const Lines errors = errors_with(key + "=" + value);
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].find("'" + name + "' must be " + rule + ", not ") != std::string::npos);
}

}  // namespace

TEST_CASE("a small config is read, with defaults for what it leaves out") {
  const Reading r = read(good);
  CHECK(r.errors.empty());
  CHECK(r.warnings.empty());
  CHECK(r.spec.name == "tiny");
  CHECK(r.spec.seed == 1);
  CHECK(r.spec.device == "auto");
  CHECK(r.spec.precision == "fp32");
  CHECK(r.spec.deterministic);
  CHECK(r.spec.threads == 0);
  CHECK(r.spec.placement == "auto");
  CHECK(r.spec.batch.global == 8);
  CHECK(r.spec.batch.shards == 0);
  CHECK(r.spec.train.epochs == 2);
  CHECK(r.spec.train.steps == 0);
  CHECK(r.spec.optimizer.kind == "sgd");
  CHECK(r.spec.model.layers.size() == 1);
  CHECK(r.spec.data.samples == 100);
}

TEST_CASE("every key of the run's own tables arrives at its place") {
  const Reading r = read(R"(
name = "all"
seed = 7
device = "cpu"
precision = "fp32"
deterministic = false
threads = 3
placement = "off"
[data]
synthetic = true
samples = 50
drop_last = true
[batch]
global = 32
shards = 4
evaluate = 5
[optimizer]
kind = "sgd"
lr = 0.2
lr_scale = "linear"
lr_base_batch = 64
momentum = 0.9
nesterov = true
weight_decay = 1e-4
decay_all = true
clip_norm = 2
clip_value = 3
[optimizer.schedule]
kind = "polynomial"
warmup = 6
power = 2
end_lr = 0.01
[train]
steps = 40
log_every = 2
save_every = 10
save_every_epochs = 3
evaluate_every = 20
evaluate_every_epochs = 4
resume = "auto"
max_seconds = 1.5
debug_memory = true
[model]
input = [4]
classes = 3
layers = [{ linear = 3 }]
[loss]
label_smoothing = 0.1
[comm]
timeout_s = 20
)");
  CHECK(r.errors.empty());
  CHECK(r.warnings.empty());
  CHECK(r.spec.seed == 7);
  CHECK(r.spec.device == "cpu");
  CHECK_FALSE(r.spec.deterministic);
  CHECK(r.spec.threads == 3);
  CHECK(r.spec.placement == "off");
  CHECK(r.spec.batch.shards == 4);
  CHECK(r.spec.batch.evaluate == 5);
  const OptimizerSpec& optimizer = r.spec.optimizer;
  CHECK(optimizer.lr == 0.2);
  CHECK(optimizer.lr_scale == "linear");
  CHECK(optimizer.lr_base_batch == 64);
  CHECK(optimizer.momentum == 0.9);
  CHECK(optimizer.nesterov);
  CHECK(optimizer.weight_decay == 1e-4);
  CHECK(optimizer.decay_all);
  CHECK(optimizer.clip_norm == 2);
  CHECK(optimizer.clip_value == 3);
  CHECK(optimizer.schedule.kind == "polynomial");
  CHECK(optimizer.schedule.warmup == 6);
  CHECK(optimizer.schedule.power == 2);
  CHECK(optimizer.schedule.end_lr == 0.01);
  CHECK(r.spec.train.steps == 40);
  CHECK(r.spec.train.log_every == 2);
  CHECK(r.spec.train.save_every == 10);
  CHECK(r.spec.train.save_every_epochs == 3);
  CHECK(r.spec.train.evaluate_every == 20);
  CHECK(r.spec.train.evaluate_every_epochs == 4);
  CHECK(r.spec.train.resume == "auto");
  CHECK(r.spec.train.max_seconds == 1.5);
  CHECK(r.spec.train.debug_memory);
  CHECK(r.spec.model.loss.label_smoothing == 0.1);
  CHECK(r.spec.comm.timeout_s == 20);
}

TEST_CASE("B20 unknown keys are all named, in order, with place and the key that was meant") {
  const Reading r = read(R"(name = "typos"
lr = 0.1
batch_size = 64
[data]
samples = 100
[optimiser]
lr = 0.1
[optimizer]
learning_rat = 0.1
  momentun = 0.9
[batch]
global = 8
[train]
num-epochs = 5
epochs = 2
[model]
input = [4]
classes = 3
layers = [{ linear = 3, biass = false }]
)",
                         {"optimizer.lrr=1", "zzz=1"});
  const Lines expected = {
      "--set optimizer.lrr=1: unknown key 'lrr' in [optimizer]; did you mean 'lr'?",
      "--set zzz=1: unknown key 'zzz' at the top level",
      "exp.toml:2:1: unknown key 'lr' at the top level; did you mean 'optimizer.lr'?",
      "exp.toml:3:1: unknown key 'batch_size' at the top level; did you mean 'batch.global'?",
      "exp.toml:6:2: unknown key 'optimiser' at the top level; did you mean 'optimizer'?",
      "exp.toml:9:1: unknown key 'learning_rat' in [optimizer]; did you mean 'lr'?",
      "exp.toml:10:3: unknown key 'momentun' in [optimizer]; did you mean 'momentum'?",
      "exp.toml:14:1: unknown key 'num-epochs' in [train]; did you mean 'epochs'?",
      "exp.toml:19:25: unknown key 'biass' in [model.layers, linear1]; did you mean 'bias'?"};
  CHECK(r.errors == expected);
}

TEST_CASE("B58 values of the wrong type or out of range are refused with key, value and range") {
  for (const char* value : {"0", "-5", "32.5", "true", "\"32\"", "nan"})
    check_refused("batch.global", value, "integer >= 1 and <= 1073741824");
  for (const char* value : {"0", "-0.1", "nan", "inf", "-inf", "\"1e-4\"", "[0.1]"})
    check_refused("optimizer.lr", value, "number > 0");
  for (const char* value : {"-1", "0", "2.0", "false"})
    check_refused("train.epochs", value, "integer >= 1");
  for (const char* value : {"1", "1.5", "-0.5"})
    check_refused("optimizer.momentum", value, "number >= 0 and < 1");
  check_refused("optimizer.beta2", "1", "number >= 0 and < 1");
  check_refused("optimizer.epsilon", "0", "number > 0");
  check_refused("optimizer.weight_decay", "-1e-4", "number >= 0");
  check_refused("optimizer.clip_norm", "-1", "number >= 0");
  check_refused("optimizer.kind", "\"lamb\"", "\"sgd\" or \"adamw\"");
  check_refused("optimizer.schedule.gamma", "0", "number > 0");
  check_refused("batch.shards", "-1", "integer >= 0 and <= 65536");
  check_refused("threads", "-1", "integer >= 0 and <= 1024");
  check_refused("train.max_seconds", "-1", "number >= 0");
  check_refused("train.log_every", "0", "integer >= 1");
  check_refused("train.save_every", "-1", "integer >= 0");
  check_refused("train.resume", "true", "\"off\", \"auto\" or \"required\"");
  check_refused("precision", "\"fp16\"", "\"fp32\"");
  check_refused("deterministic", "1", "true or false");
  CHECK(errors_with("optimizer.lr=-0.1") ==
        Lines{"--set optimizer.lr=-0.1: 'lr' must be number > 0, not -0.1"});
}

TEST_CASE("B58 an integer is a number, and an absurd rate is accepted with a warning") {
  const Reading one = read(good, {"optimizer.lr=1"});
  CHECK(one.errors.empty());
  CHECK(one.warnings.empty());
  CHECK(one.spec.optimizer.lr == 1.0);
  const Reading absurd = read(good, {"optimizer.lr=4e7"});
  CHECK(absurd.errors.empty());
  CHECK(absurd.spec.optimizer.lr == 4e7);
  REQUIRE(absurd.warnings.size() == 1);
  CHECK(absurd.warnings[0].find("'lr' = ") != std::string::npos);
  CHECK(absurd.warnings[0].find("unusually large") != std::string::npos);
}

TEST_CASE("B58 mistakes of layers are shown with the others, all at once") {
  const Reading r = read(R"([data]
samples = 100
[batch]
global = 32.5
[optimizer]
momentum = 1
[train]
epochs = -1
[model]
input = [4, 8, 8]
classes = 3
layers = [
  { conv = 8, kernel = 0 },
  { conv = 8, kernel = 3, stride = 0 },
  { dropout = 1.0 },
  { linear = 3 },
]
)");
  REQUIRE(r.errors.size() == 6);
  CHECK(r.errors[0] == "exp.toml:4:10: 'global' must be integer >= 1 and <= 1073741824, not 32.5");
  CHECK(r.errors[1] == "exp.toml:6:12: 'momentum' must be number >= 0 and < 1, not 1");
  CHECK(r.errors[2] == "exp.toml:8:10: 'epochs' must be integer >= 1, not -1");
  CHECK(r.errors[3].starts_with("exp.toml:13:24: "));
  CHECK(r.errors[4].starts_with("exp.toml:14:36: "));
  CHECK(r.errors[5].starts_with("exp.toml:15:15: "));
}

TEST_CASE("B73 large integers keep their value") {
  const Reading steps = read(R"(seed = 9223372036854775807
[data]
samples = 1099511627776
[batch]
global = 1073741824
[train]
steps = 3000000000
[model]
input = [4]
classes = 3
layers = [{ linear = 3 }]
)");
  CHECK(steps.errors.empty());
  CHECK(steps.spec.seed == INT64_MAX);
  CHECK(steps.spec.train.steps == 3000000000);
  CHECK(steps.spec.batch.global == 1073741824);
  CHECK(steps.spec.data.samples == 1099511627776);
  CHECK(read(good, {"train.epochs=2000000000"}).spec.train.epochs == 2000000000);
  CHECK(read(good, {"train.epochs=9223372036854775807"}).spec.train.epochs == INT64_MAX);
  check_refused("seed", "-1", "integer >= 0");
  CHECK_THROWS_AS(parse_config("[train]\nsteps = 9223372036854775808\n", "exp.toml"), Error);
}

TEST_CASE("a run has a length in epochs or in steps, not both") {
  CHECK(errors_with("train.steps=5") ==
        Lines{"--set train.steps=5: train.epochs and train.steps are both given; keep one"});
  const auto without = [](const std::string& part) {
    std::string text = good;
    return text.erase(text.find(part), part.size());
  };
  CHECK(read(without("epochs = 2\n")).errors ==
        Lines{"exp.toml:6:1: missing key 'epochs' or 'steps' in [train]"});
  CHECK(read(without("[train]\nepochs = 2\n")).errors.size() == 1);
  // A wrong value is one problem, not two.
  CHECK(errors_with("train.epochs=-1").size() == 1);
}

TEST_CASE("what a run cannot do without is asked for by name") {
  const Reading r = read("name = \"empty\"\n");
  CHECK(r.errors.size() == 5);
  const auto has = [&](const std::string& message) {
    return std::any_of(r.errors.begin(), r.errors.end(), [&](const std::string& line) {
      return line.find(message) != std::string::npos;
    });
  };
  CHECK(has("missing key 'global' in [batch]"));
  CHECK(has("missing key 'input' in [model]"));
  CHECK(has("missing key 'layers' in [model]"));
  CHECK(has("missing key 'epochs' or 'steps' in [train]"));
  CHECK(has("missing [data.train]; data.synthetic = true trains on random data"));
}

TEST_CASE("keys that contradict one another are refused at their place") {
  CHECK(read(good, {"batch.shards=8"}).errors.empty());
  CHECK(errors_with("batch.shards=9") ==
        Lines{"--set batch.shards=9: batch.shards 9 > batch.global 8"});
  CHECK(
      errors_with("optimizer.nesterov=true") ==
      Lines{"--set optimizer.nesterov=true: optimizer.nesterov needs optimizer.momentum above 0"});
  CHECK(errors_with("optimizer.schedule.kind=\"step\"") ==
        Lines{"--set optimizer.schedule.kind=\"step\": optimizer.schedule.every or every_epochs is "
              "needed with kind \"step\""});
  CHECK(errors_with("name=\"a/b\"").size() == 1);
  for (const std::string& name : {std::string(), std::string("."), std::string(".."),
                                  std::string("a\\nb"), std::string(231, 'x')}) {
    CHECK(errors_with("name=\"" + name + '"').size() == 1);
  }
  CHECK(errors_with("name=\"" + std::string(230, 'x') + '"').empty());
}

TEST_CASE("a key without effect is a warning") {
  const auto warnings = [](const std::string& set) { return read(good, {set}).warnings; };
  CHECK(warnings("optimizer.beta1=0.8") ==
        Lines{"--set optimizer.beta1=0.8: optimizer.beta1 has no effect with kind \"sgd\""});
  CHECK(warnings("optimizer.lr_base_batch=64").size() == 1);
  CHECK(warnings("optimizer.schedule.power=2").size() == 1);
  CHECK(warnings("train.evaluate_every=5").size() == 1);
  CHECK(warnings("optimizer.momentum=0.9").empty());
}

TEST_CASE("synthetic data has sixteen batches unless samples are given") {
  std::string text = good;
  text.replace(text.find("samples = 100"), 13, "synthetic = true");
  const Reading r = read(text);
  CHECK(r.errors.empty());
  CHECK(r.spec.data.samples == 128);
  CHECK(r.warnings == Lines{"exp.toml:3:13: data.samples is not given: 128 synthetic samples, 16 "
                            "batches"});
  CHECK(read(text, {"data.samples=40"}).spec.data.samples == 40);
  CHECK(read(text, {"batch.global=1073741824"}).spec.data.samples == 17179869184);
}

TEST_CASE("all keys of a config are listed once, with type, default and meaning") {
  const std::vector<DocumentedKey> keys = all_keys();
  std::set<std::string> paths;
  for (const DocumentedKey& key : keys) {
    CAPTURE(key.path);
    CHECK(paths.insert(key.path).second);
    CHECK_FALSE(key.type.empty());
    CHECK_FALSE(key.doc.empty());
  }
  for (const char* path : {"seed",
                           "device",
                           "precision",
                           "deterministic",
                           "threads",
                           "placement",
                           "batch.global",
                           "batch.shards",
                           "optimizer.lr",
                           "optimizer.schedule.kind",
                           "train.epochs",
                           "train.steps",
                           "train.save_every",
                           "train.evaluate_every",
                           "train.save_every_epochs",
                           "train.evaluate_every_epochs",
                           "train.resume",
                           "train.max_seconds",
                           "train.log_every",
                           "comm.timeout_s",
                           "comm.backend",
                           "comm.algorithm",
                           "data.synthetic",
                           "data.samples",
                           "data.drop_last",
                           "data.train.file",
                           "data.train.augment.flip",
                           "data.test.labels",
                           "model.input",
                           "model.classes",
                           "model.layers",
                           "loss.kind",
                           "model.layers.name",
                           "model.layers.from"}) {
    CAPTURE(path);
    CHECK(paths.count(path) == 1);
  }
  for (const LayerKind& kind : layer_kinds()) {
    CAPTURE(kind.key);
    CHECK(paths.count("model.layers." + kind.key + "." + kind.key) == 1);
  }
  const auto find = [&](const std::string& path) {
    return *std::find_if(keys.begin(), keys.end(),
                         [&](const DocumentedKey& key) { return key.path == path; });
  };
  CHECK(find("optimizer.lr").type == "number > 0");
  CHECK(find("optimizer.lr").default_text == "0.1");
  CHECK(find("optimizer.kind").type == "\"sgd\" or \"adamw\"");
  CHECK(find("optimizer.kind").default_text == "\"sgd\"");
  CHECK(find("batch.global").required);
  CHECK(find("batch.global").default_text.empty());
  CHECK_FALSE(find("train.steps").required);
  CHECK(find("train.steps").default_text.empty());  // 0 stands for "not given"
  CHECK(find("train.save_every").default_text == "0");
}

TEST_CASE("a place in a config is that of a value or of the table that lacks it") {
  const Value config = parse_config("[a]\nb = { c = 1 }\n", "exp.toml");
  CHECK(to_string(place_of(config, "a.b.c")) == "exp.toml:2:11");
  CHECK(to_string(place_of(config, "a.b.d")) == "exp.toml:2:5");
  CHECK(to_string(place_of(config, "a.x.y")) == "exp.toml:1:1");
  CHECK(to_string(place_of(config, "a.b.c.d")) == "exp.toml:2:11");
}

}  // namespace annulus
