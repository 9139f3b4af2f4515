// SPDX-License-Identifier: Apache-2.0
// What is refused before anything is made, and where the message points.
#include <memory>

#include <doctest/doctest.h>

#include "config/config.h"
#include "core/placement.h"
#include "train/memory_estimate.h"
#include "train/run_plan.h"

using annulus::DeviceKind;
using annulus::Error;
using annulus::ErrorKind;
using annulus::Graph;
using annulus::make_device;
using annulus::make_optimizer;
using annulus::MemoryEstimate;
using annulus::moments_of;
using annulus::Placement;
using annulus::plan_run;
using annulus::Problems;
using annulus::require_memory;
using annulus::RunPlan;
using annulus::RunSpec;
using annulus::Value;

namespace {

const char* const config_text = R"([data]
synthetic = true
samples = 100
[data.train]
file = "x.h5"
inputs = "x"
[batch]
global = 8
shards = 4
[train]
epochs = 2
[optimizer]
lr = 0.1
[model]
input = [3, 4, 4]
classes = 3
layers = [ { flatten = true }, { batch_norm = true }, { linear = 3 } ]
)";

struct Read {
  Value value;
  RunSpec spec;
  Problems problems;
  std::unique_ptr<Graph> graph;
};

Read read(const std::vector<std::string>& sets) {
  Read read;
  read.value = annulus::parse_config(config_text, "exp.toml", sets);
  annulus::let_sets_win(read.value);
  annulus::read_run_spec(read.value, read.spec, read.problems);
  read.graph = std::make_unique<Graph>(std::move(read.spec.model), read.problems);
  annulus::check_inputs(read.spec, *read.graph, read.value, read.problems);
  return read;
}

std::string refusal(const std::vector<std::string>& sets, std::int64_t samples = 104) {
  try {
    const Read config = read(sets);
    config.problems.throw_if_any();
    plan_run(config.spec, *config.graph, config.value, samples);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    return error.text();
  }
  return "";
}

bool starts(const std::string& text, const std::string& start) {
  INFO(text);
  return text.rfind(start, 0) == 0;
}

}  // namespace

TEST_CASE("a run that fits is planned") {
  const Read config = read({});
  config.problems.throw_if_any();
  const RunPlan plan = plan_run(config.spec, *config.graph, config.value, 104);
  CHECK(plan.batches.steps_per_epoch() == 13);
  CHECK(plan.updates == 26);
  CHECK(plan.schedule.lr(0) == 0.1);
  CHECK(annulus::doubts(plan, 4).empty());
  CHECK(annulus::doubts(plan, 6) ==
        std::vector<std::string>{"2 of 6 ranks have no work: batch.shards is 4"});
}

TEST_CASE("what data and batch do not allow is refused at the key that mends it") {
  CHECK(starts(refusal({"data.drop_last=true"}, 5),
               "exp.toml:8:10: 0 steps per epoch: 5 samples < global batch 8"));
  CHECK(starts(refusal({"batch.global=100"}, 101),
               "--set batch.global=100: layer batch_norm1: a shard of 1 sample"));
  CHECK(starts(refusal({"optimizer.schedule.warmup=27"}),
               "--set optimizer.schedule.warmup=27: optimizer.schedule: the warm-up is longer"));
  CHECK(starts(
      refusal({"train.epochs=9223372036854775807"}),
      "--set train.epochs=9223372036854775807: 9223372036854775807 epochs of 13 steps are more"));
}

TEST_CASE("more shards than samples, as many ranks can make, are refused at the batch") {
  Read config = read({"batch.shards=0"});
  config.spec.batch.shards = 9;
  try {
    plan_run(config.spec, *config.graph, config.value, 104);
    FAIL("nine shards of eight samples");
  } catch (const Error& error) {
    CHECK(starts(error.text(), "exp.toml:8:10: a batch has at least one sample a shard"));
    CHECK(error.found() == "9");
  }
}

TEST_CASE("numbers a channel must be as many as there are channels") {
  CHECK(refusal({"data.train.mean=[1, 2, 3]", "data.train.std=[2]"}).empty());
  CHECK(starts(refusal({"data.train.mean=[1, 2]"}),
               "--set data.train.mean=[1, 2]: 'mean' has 2 numbers for the 3 channels of input"));
  CHECK(starts(refusal({"data.train.std=[1, 2, 3, 4]"}),
               "--set data.train.std=[1, 2, 3, 4]: 'std' has 4 numbers for the 3 channels"));
  CHECK(starts(refusal({"data.train.augment.flip=true", "model.input=[12]",
                        "model.layers=[{ linear = 3 }]"}),
               "--set data.train.augment.flip=true: 'augment' varies images"));
}

TEST_CASE("moments are counted without being made") {
  const auto device = make_device(DeviceKind::cpu, Placement{});
  for (const char* kind :
       {"optimizer.momentum=0.9", "optimizer.momentum=0.0", "optimizer.kind=adamw"}) {
    CAPTURE(kind);
    const Read config = read({kind});
    const auto optimizer = make_optimizer(config.spec.optimizer, config.graph->parameters(),
                                          annulus::plain_layout, *device);
    CHECK(optimizer->bytes() == static_cast<std::size_t>(moments_of(config.spec.optimizer) *
                                                         config.graph->flat_elements()) *
                                    sizeof(float));
  }
}

TEST_CASE("ranks that do not fit into the memory of their node are refused with both numbers") {
  MemoryEstimate estimate;
  estimate.process = 1000;  // is resident already: the kernel does not call it available
  estimate.values = 600;
  estimate.weights = 400;
  CHECK_NOTHROW(require_memory(estimate, 2, 2000));
  CHECK_NOTHROW(require_memory(estimate, 64, std::nullopt));
  try {
    require_memory(estimate, 2, 1999);
    FAIL("2000 bytes fit in 1999");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::resource);
    CHECK(error.expected() == "at most 999 bytes a rank");
    CHECK(error.found() == "1000");
  }
}
