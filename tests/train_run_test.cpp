// SPDX-License-Identifier: Apache-2.0
// Whole steps with ranks as threads: results that a correct sum must give, whatever the number of
// ranks.
#include <cmath>
#include <numeric>

#include <doctest/doctest.h>

#include "core/rng.h"
#include "support/training.h"

using annulus::DataSets;
using annulus::Error;
using annulus::RandomStream;
using annulus::RandomUse;
using annulus::Shape;
using annulus::testing::MemoryDataset;
using annulus::testing::RankOutcome;
using annulus::testing::train;
using annulus::testing::TrainingJob;

namespace {

// y = w x with w = 1, no bias, target 0, mean of squares, x = 1 .. 10.
const char* const linear_model = R"(
[batch]
global = 10
SHARDS
[data]
synthetic = true
[optimizer]
kind = "sgd"
lr = 0.001
OPTIONS
[train]
steps = 1
[loss]
kind = "mean_squared_error"
[model]
input = [1]
layers = [ { linear = 1, bias = false, weight_init = 1.0 } ]
)";

std::string with(std::string text, const std::string& word, const std::string& replacement) {
  return text.replace(text.find(word), word.size(), replacement);
}

DataSets one_to_ten() {
  std::vector<float> x(10);
  std::iota(x.begin(), x.end(), 1.0F);
  DataSets data;
  data.train = std::make_unique<MemoryDataset>(Shape{1}, x, std::vector<float>(10, 0.0F));
  return data;
}

// Random images with labels that a network can tell apart.
std::unique_ptr<MemoryDataset> blobs(std::int64_t samples, const Shape& shape, int classes,
                                     std::uint64_t seed) {
  const RandomStream noise(seed, RandomUse::synthetic, "blobs");
  const std::int64_t width = shape.elements();
  std::vector<float> inputs;
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < samples; ++i) {
    labels.push_back(static_cast<std::int32_t>(i % classes));
    for (std::int64_t e = 0; e < width; ++e) {
      const float mean = e % classes == i % classes ? 1.0F : 0.0F;
      inputs.push_back(mean + 0.5F * noise.normal(static_cast<std::uint64_t>(e),
                                                  static_cast<std::uint64_t>(i), 0));
    }
  }
  return std::make_unique<MemoryDataset>(shape, std::move(inputs), std::move(labels));
}

// A network with all that could make results depend on ranks: batch norm, dropout, momentum, decay,
// clipping, a last batch that divides by nothing.
const char* const small_net = R"(
[batch]
global = 16
shards = SHARDS
[data]
synthetic = true
[data.test]
file = "unused"
inputs = "x"
labels = "y"
[optimizer]
kind = "sgd"
lr = 0.05
momentum = 0.9
weight_decay = 0.001
clip_norm = 1.0
[optimizer.schedule]
kind = "cosine"
warmup = 2
[train]
epochs = 2
DEBUG
[model]
input = [2, 5, 3]
classes = 4
layers = [
  { conv = 8, kernel = 3, padding = 1, bias = false, name = "a" },
  { batch_norm = true, relu = true, name = "a_bn" },
  { conv = 8, kernel = 3, padding = "same", bias = false },
  { batch_norm = true, add = "a_bn", relu = true },
  { flatten = true },
  { dropout = 0.25 },
  { linear = 4 },
]
)";

TrainingJob small_job(int shards, int ranks, int nodes = 1, const std::string& debug = "") {
  const auto data = [] {
    DataSets sets;
    sets.train = blobs(61, Shape{2, 5, 3}, 4, 7);  // batches of 16, 16, 16 and 13
    sets.test = blobs(37, Shape{2, 5, 3}, 4, 8);
    return sets;
  };
  return {with(with(small_net, "SHARDS", std::to_string(shards)), "DEBUG", debug), data, ranks,
          nodes};
}

}  // namespace

TEST_CASE("B01 the gradient is the mean over samples on 1, 2, 3, 4 and 7 ranks") {
  for (int ranks : {1, 2, 3, 4, 7}) {
    CAPTURE(ranks);
    const std::string config = with(with(linear_model, "SHARDS", ""), "OPTIONS", "");
    for (const RankOutcome& outcome : train({config, one_to_ten, ranks})) {
      CHECK(outcome.losses.at(0) == doctest::Approx(38.5).epsilon(1e-6));
      CHECK(outcome.norms.at(0) == doctest::Approx(77).epsilon(1e-6));
      CHECK(outcome.weights.at(0) == doctest::Approx(0.923).epsilon(1e-6));
    }
  }
}

TEST_CASE("B26 the gradient norm and clipping do not depend on the number of ranks") {
  for (int ranks : {1, 2, 4}) {
    CAPTURE(ranks);
    const std::string loose =
        with(with(linear_model, "SHARDS", "shards = 4"), "OPTIONS", "clip_norm = 100");
    const std::string tight =
        with(with(linear_model, "SHARDS", "shards = 4"), "OPTIONS", "clip_norm = 38.5");
    CHECK(train({loose, one_to_ten, ranks})[0].norms.at(0) == doctest::Approx(77).epsilon(1e-6));
    CHECK(train({loose, one_to_ten, ranks})[0].weights.at(0) ==
          doctest::Approx(0.923).epsilon(1e-6));
    // Half the norm: half the gradient.
    CHECK(train({tight, one_to_ten, ranks})[0].weights.at(0) ==
          doctest::Approx(0.9615).epsilon(1e-6));
  }
}

TEST_CASE("B59 the first update takes the first rate of the warm-up, the next the second") {
  const std::string options = "[optimizer.schedule]\nkind = \"constant\"\nwarmup = 2";
  const std::string config =
      with(with(with(linear_model, "SHARDS", ""), "OPTIONS", options), "steps = 1", "steps = 3");
  // A rate of lr takes 77 lr w from w: 1, 1 - 0.0385, then twice 1 - 0.077 of what there was.
  const std::vector<double> weights = {1, 0.9615, 0.8874645, 0.81912973};
  for (const RankOutcome& outcome : train({config, one_to_ten, 2})) {
    REQUIRE(outcome.norms.size() == 3);
    for (std::size_t update = 0; update < 3; ++update) {
      CHECK(outcome.norms[update] == doctest::Approx(77 * weights[update]).epsilon(1e-6));
    }
    CHECK(outcome.weights.at(0) == doctest::Approx(weights[3]).epsilon(1e-6));
  }
}

TEST_CASE("the same weights bit for bit on every number of ranks that keeps the tree") {
  for (int shards : {1, 4, 8}) {
    CAPTURE(shards);
    const RankOutcome one = train(small_job(shards, 1))[0];
    for (int ranks : {1, 2, 4, 8}) {
      for (int nodes : {1, 2}) {
        if (nodes > ranks) continue;
        CAPTURE(ranks);
        CAPTURE(nodes);
        for (const RankOutcome& outcome : train(small_job(shards, ranks, nodes))) {
          CHECK(outcome.result.weights_hash == one.result.weights_hash);
          CHECK(outcome.losses == one.losses);
          CHECK(outcome.result.test->loss == one.result.test->loss);
          CHECK(outcome.result.test->values == one.result.test->values);
        }
      }
    }
  }
}

TEST_CASE("odd numbers of ranks and shards agree to rounding, and their ranks among each other") {
  const RankOutcome one = train(small_job(5, 1))[0];
  for (int ranks : {2, 3, 5, 6}) {
    CAPTURE(ranks);
    const std::vector<RankOutcome> many = train(small_job(5, ranks));
    for (const RankOutcome& outcome : many) {
      CHECK(outcome.result.weights_hash == many[0].result.weights_hash);
      CHECK(outcome.losses.back() == doctest::Approx(one.losses.back()).epsilon(1e-4));
    }
  }
}

TEST_CASE("64 ranks with 4 shards and with 16 give the weights of one") {
  for (int shards : {4, 16}) {
    CAPTURE(shards);
    const RankOutcome one = train(small_job(shards, 1))[0];
    const std::vector<RankOutcome> many = train(small_job(shards, 64, 4));
    CHECK(many.front().result.weights_hash == one.result.weights_hash);
    CHECK(many.back().result.weights_hash == one.result.weights_hash);
  }
}

TEST_CASE("separate, poisoned memory for each tensor gives the bits of the planned arena") {
  const RankOutcome planned = train(small_job(4, 2))[0];
  const RankOutcome separate = train(small_job(4, 2, 1, "debug_memory = true"))[0];
  CHECK(separate.result.weights_hash == planned.result.weights_hash);
}

TEST_CASE("B67 the same seed gives the same losses and weights on each run") {
  const RankOutcome first = train(small_job(2, 2))[0];
  for (int run = 0; run < 2; ++run) {
    const RankOutcome again = train(small_job(2, 2))[0];
    CHECK(again.losses == first.losses);
    CHECK(again.result.weights_hash == first.result.weights_hash);
  }
}

TEST_CASE("B16 evaluation counts each sample once, for any number of ranks and chunk size") {
  const std::string config = R"(
[batch]
global = 10
evaluate = CHUNK
[data]
synthetic = true
[data.test]
file = "unused"
inputs = "x"
labels = "y"
[optimizer]
lr = 1e-30
[train]
steps = 1
[model]
input = [2]
classes = 2
layers = [ { linear = 2, bias = false, weight_init = 1.0 } ]
[loss]
top_k = [1]
)";
  // All scores tie, so class 0 is the answer: 7 of the 10 labels are 0.
  const auto data = [] {
    DataSets sets;
    sets.train = blobs(10, Shape{2}, 2, 1);
    std::vector<std::int32_t> labels = {0, 1, 0, 0, 1, 0, 0, 0, 1, 0};
    std::vector<float> inputs(20);
    for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = 0.1F * static_cast<float>(i);
    sets.test = std::make_unique<MemoryDataset>(Shape{2}, inputs, labels);
    return sets;
  };
  for (int ranks : {1, 2, 3, 4, 8}) {
    for (int chunk : {1, 3, 4, 10, 16}) {
      CAPTURE(ranks);
      CAPTURE(chunk);
      const std::string text = with(config, "CHUNK", std::to_string(chunk));
      const RankOutcome outcome = train({text, data, ranks})[0];
      CHECK(outcome.result.test->samples == 10);
      CHECK(outcome.result.test->values.at(0).second == doctest::Approx(0.7));
      CHECK(outcome.result.test->loss == doctest::Approx(std::log(2.0)).epsilon(1e-6));
    }
  }
}

TEST_CASE("B17 running statistics are those of all shards, on every rank") {
  const std::string config = R"(
[batch]
global = 8
shards = 4
[data]
synthetic = true
[data.train]
file = "unused"
inputs = "x"
labels = "y"
shuffle = false
[optimizer]
lr = 1e-30
[train]
steps = 200
[model]
input = [1, 2, 2]
classes = 2
layers = [ { batch_norm = true, name = "bn" }, { linear = 2 } ]
)";
  // Rank r gets only samples of the constant value r + 1.
  const auto data = [] {
    std::vector<float> inputs;
    std::vector<std::int32_t> labels(8, 0);
    for (int sample = 0; sample < 8; ++sample) {
      const int rank = sample / 2;
      for (int e = 0; e < 4; ++e) inputs.push_back(static_cast<float>(rank + 1));
    }
    DataSets sets;
    sets.train = std::make_unique<MemoryDataset>(Shape{1, 2, 2}, inputs, labels);
    return sets;
  };
  for (const RankOutcome& outcome : train({config, data, 4})) {
    CHECK(outcome.statistics.at(0) == doctest::Approx(2.5).epsilon(1e-5));
    CHECK(outcome.result.weights_hash == train({config, data, 1})[0].result.weights_hash);
  }
}

TEST_CASE("B50 ignored labels leave loss, count and gradient on every split over ranks") {
  const std::string config = R"(
[batch]
global = 8
shards = 2
[data]
synthetic = true
[data.train]
file = "unused"
inputs = "x"
labels = "y"
shuffle = false
[optimizer]
lr = 0.5
[train]
steps = 1
[loss]
ignore_index = 255
[model]
input = [3]
classes = 3
layers = [ { linear = 3, bias = false } ]
)";
  const auto data = [](std::vector<std::int32_t> labels) {
    return [labels] {
      std::vector<float> inputs;
      for (int i = 0; i < 24; ++i) inputs.push_back(std::sin(static_cast<float>(i)));
      DataSets sets;
      sets.train = std::make_unique<MemoryDataset>(Shape{3}, inputs, labels);
      return sets;
    };
  };
  const auto mixed = data({0, 1, 2, 0, 1, 255, 255, 255});
  const RankOutcome one = train({config, mixed, 1})[0];
  const RankOutcome two = train({config, mixed, 2})[0];
  CHECK(two.losses == one.losses);
  CHECK(two.weights == one.weights);

  // Five counted samples weigh the same wherever they lie: a batch of just these five agrees.
  std::string five = with(config, "global = 8", "global = 5");
  const auto counted = [] {
    std::vector<float> inputs;
    for (int i = 0; i < 15; ++i) inputs.push_back(std::sin(static_cast<float>(i)));
    DataSets sets;
    sets.train =
        std::make_unique<MemoryDataset>(Shape{3}, inputs, std::vector<std::int32_t>{0, 1, 2, 0, 1});
    return sets;
  };
  const RankOutcome alone = train({five, counted, 1})[0];
  CHECK(alone.losses[0] == doctest::Approx(one.losses[0]).epsilon(1e-6));
  for (std::size_t i = 0; i < alone.weights.size(); ++i) {
    CHECK(alone.weights[i] == doctest::Approx(one.weights[i]).epsilon(1e-5));
  }

  const auto nothing = data(std::vector<std::int32_t>(8, 255));
  const RankOutcome idle = train({config, nothing, 2})[0];
  CHECK(idle.losses[0] == 0);
  CHECK(idle.norms[0] == 0);
}

TEST_CASE("B77 the loss of an update is the mean over all ranks' samples") {
  // Frozen weights of one; rank r's samples give the loss r + 1.
  const std::string config = R"(
[batch]
global = 4
[data]
synthetic = true
[data.train]
file = "unused"
inputs = "x"
labels = "y"
shuffle = false
[optimizer]
lr = 1e-30
[train]
steps = 1
[loss]
kind = "mean_squared_error"
[model]
input = [1]
layers = [ { linear = 1, bias = false, weight_init = 1.0 } ]
)";
  const auto data = [] {
    DataSets sets;
    const std::vector<float> inputs = {1, std::sqrt(2.0F), std::sqrt(3.0F), 2};
    sets.train = std::make_unique<MemoryDataset>(Shape{1}, inputs, std::vector<float>(4, 0.0F));
    return sets;
  };
  for (const RankOutcome& outcome : train({config, data, 4})) {
    CHECK(outcome.losses[0] == doctest::Approx(2.5).epsilon(1e-6));
  }
}

TEST_CASE("a loss that is not finite is seen by every rank, and changes nothing") {
  const std::string config = with(with(linear_model, "SHARDS", ""), "OPTIONS", "");
  const auto data = [] {
    std::vector<float> x(10, 1.0F);
    x[7] = std::nanf("");
    DataSets sets;
    sets.train = std::make_unique<MemoryDataset>(Shape{1}, x, std::vector<float>(10, 0.0F));
    return sets;
  };
  for (const RankOutcome& outcome : train({config, data, 3})) CHECK(outcome.weights.at(0) == 1.0F);
}

TEST_CASE("a test loss that is not finite ends every rank with the samples and the rank") {
  const std::string config = with(with(linear_model, "SHARDS", "evaluate = 2"), "OPTIONS", "");
  const auto data = [] {
    DataSets sets = one_to_ten();
    std::vector<float> x(7, 1.0F);
    x[5] = std::nanf("");
    sets.test = std::make_unique<MemoryDataset>(Shape{1}, x, std::vector<float>(7, 0.0F));
    return sets;
  };
  for (int ranks : {1, 3}) {
    CAPTURE(ranks);
    try {
      train({config, data, ranks});
      FAIL("an evaluation of NaN");
    } catch (const Error& error) {
      CHECK(error.exit_code() == 6);
      CHECK(error.text().find("not finite at samples 4 to 5;") != std::string::npos);
      CHECK(error.rank() == ranks - 1);  // chunks 0 | 1 | 2 3
    }
  }
}
