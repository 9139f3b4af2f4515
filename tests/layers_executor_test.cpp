// SPDX-License-Identifier: Apache-2.0
// Whole networks by the naive reference: gradients, memory, order.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "layers/executor.h"
#include "support/allocations.h"
#include "support/naive_backend.h"
#include "support/network.h"

namespace annulus {
namespace {

// Small networks that between them have everything: branches, residuals of both forms, concat,
// shared layers and shared norms, several inputs, a value read three times, dropout, views.
struct Model {
  const char* name;
  const char* text;
};

const std::vector<Model>& models() {
  static const std::vector<Model> list = {
      {"chain", R"([model]
input = [2, 7, 5]
layers = [
  { conv = 4, kernel = 3, padding = "same" },
  { batch_norm = true },
  { avg_pool = 2, ceil_mode = true },
  { dropout = 0.4 },
  { flatten = true },
  { linear = 6 },
  { softmax = true },
  { linear = 3 },
]
[loss]
label_smoothing = 0.1
)"},
      {"residual", R"([model]
input = [3, 6, 6]
layers = [
  { conv = 4, kernel = 3, padding = 1, name = "stem" },
  { conv = 4, kernel = 3, padding = 1, groups = 2, bias = false },
  { batch_norm = true, add = "stem", name = "block" },
  { conv = 4, kernel = 1, stride = 2, from = "block" },
  { batch_norm = true, name = "shortcut" },
  { conv = 4, kernel = 3, stride = 2, padding = 1, dilation = 1, from = "block" },
  { batch_norm = true, name = "main" },
  { add = ["shortcut", "main", "main"] },
  { global_avg_pool = true },
  { linear = 3 },
]
)"},
      {"kinks", R"([model]
input = [2, 9, 7]
layers = [
  { conv = 4, kernel = 3, padding = 1 },
  { batch_norm = true, relu = true },
  { max_pool = 3, stride = 2, padding = 1 },
  { relu = true, name = "r" },
  { conv = 4, kernel = [1, 3], padding = "same" },
  { batch_norm = true, add = "r", relu = true },
  { relu = true },
  { dropout = 0.25 },
  { linear = 3 },
]
)"},
      {"siamese", R"([model]
input = { left = [5], right = [5], image = [1, 4, 4] }
layers = [
  { linear = 4, from = "left", name = "a" },
  { batch_norm = true, name = "na" },
  { linear = 4, from = "right", share = "a", name = "b" },
  { batch_norm = true, share = "na", name = "nb" },
  { avg_pool = [1, 2], from = "image" },
  { flatten = true, name = "f" },
  { linear = 4, from = "nb", name = "c0" },
  { linear = 4, from = "na", share = "c0", name = "c1" },
  { concat = ["na", "nb", "f", "c1", "c0"] },
  { linear = 2 },
]
[loss]
kind = "mean_squared_error"
)"},
      {"views", R"([model]
input = [2, 3, 3]
layers = [
  { conv = 2, kernel = 1, name = "c" },
  { flatten = true, name = "f1" },
  { flatten = true, from = "c", name = "f2" },
  { linear = 18, from = "f2", name = "l" },
  { add = ["f1", "l", "f2", "f1"] },
  { linear = 3 },
]
)"},
  };
  return list;
}

double loss_of(Network& network) {
  return network.forward().loss;
}

// Compares some gradients of each parameter with central differences.
void check_gradients(Network& network) {
  network.step();
  const Floats gradients = network.gradients;
  double size = 0;
  for (float g : gradients) size = std::max<double>(size, std::abs(g));
  for (const Graph::Parameter& p : network.graph.parameters()) {
    CAPTURE(p.name);
    const std::int64_t stride = std::max<std::int64_t>(1, p.elements / 7);
    for (std::int64_t e = 0; e < p.elements; e += stride) {
      const auto i = static_cast<std::size_t>(p.offset + e);
      const float before = network.weights[i];
      const float step = 2e-4F;
      network.weights[i] = before + step;
      const double above = loss_of(network);
      network.weights[i] = before - step;
      const double below = loss_of(network);
      network.weights[i] = before;
      const double slope = (above - below) / (2.0 * static_cast<double>(step));
      CHECK(std::abs(slope - gradients[i]) < 2e-3 * size + 1e-4);
    }
  }
}

}  // namespace

TEST_CASE("whole networks: gradients agree with finite differences") {
  const auto backend = make_naive_backend();
  for (const Model& model : models()) {
    CAPTURE(model.name);
    const Graph graph = make_graph(model.text);
    Network network(graph, *backend, 4);
    check_gradients(network);
  }
}

TEST_CASE("planned and separate memory give the same bits") {
  const auto backend = make_naive_backend();
  for (const Model& model : models()) {
    CAPTURE(model.name);
    const Graph graph = make_graph(model.text);
    Network planned(graph, *backend, 4);
    Network separate(graph, *backend, 4, Mode::train, MemoryMode::separate);
    CHECK(separate.arena.bytes() > planned.arena.bytes());
    for (int pass = 0; pass < 2; ++pass) {
      const LossSums a = planned.step();
      const LossSums b = separate.step();
      CHECK(a.loss == b.loss);
      CHECK(planned.prediction() == separate.prediction());
      CHECK(planned.gradients == separate.gradients);
      CHECK(planned.batch_sums == separate.batch_sums);
    }
    for (float g : planned.gradients) REQUIRE(std::isfinite(g));
  }
}

TEST_CASE("separate memory is poisoned before a value's life and after it, in every step") {
  const auto backend = make_naive_backend();
  const Graph graph = make_graph(models()[0].text);
  Network network(graph, *backend, 4, Mode::train, MemoryMode::separate);
  const auto* words = network.arena.as<float>();
  const auto count = static_cast<std::ptrdiff_t>(network.arena.bytes() / sizeof(float));
  const auto alive = [&] {
    return std::count_if(words, words + count, [](float word) { return !std::isnan(word); });
  };
  CHECK(alive() == 0);
  for (int pass = 0; pass < 2; ++pass) {
    network.forward();
    CHECK(alive() > 4 * 3);
    network.backward();
    CHECK(alive() == 4 * 3);  // the prediction
  }
}

TEST_CASE("passes allocate nothing") {
  const auto backend = make_naive_backend();
  for (const Model& model : models()) {
    CAPTURE(model.name);
    const Graph graph = make_graph(model.text);
    Network network(graph, *backend, 4);
    network.ready.reserve(1000);
    network.step();
    const std::int64_t before = allocations();
    network.step();
    CHECK(allocations() == before);
  }
}

TEST_CASE("gradients are ready in the graph's order, once, the shared ones after the last use") {
  const auto backend = make_naive_backend();
  for (const Model& model : models()) {
    CAPTURE(model.name);
    const Graph graph = make_graph(model.text);
    Network network(graph, *backend, 3);
    network.forward();
    FlatBuffers buffers = network.buffers();
    std::vector<const float*> inputs;
    for (const auto& input : network.inputs) inputs.push_back(input.data());
    // What is said to be final must not change any more.
    Floats final_gradients;
    std::vector<int> order;
    network.executor.backward(inputs, buffers, network.context, [&](int parameter) {
      order.push_back(parameter);
      const Graph::Parameter& p = graph.parameters()[static_cast<std::size_t>(parameter)];
      final_gradients.assign(network.gradients.begin(),
                             network.gradients.begin() + p.offset + p.room);
      for (float g : final_gradients) REQUIRE(std::isfinite(g));
    });
    for (std::size_t i = 1; i < order.size(); ++i) CHECK(order[i - 1] < order[i]);
    CHECK(order.back() == static_cast<int>(graph.parameters().size()) - 1);
    CHECK(final_gradients == network.gradients);
  }
}

TEST_CASE("executors of several batch sizes share one arena") {
  const auto backend = make_naive_backend();
  const Graph graph = make_graph(models()[1].text);
  Network large(graph, *backend, 5);
  Network small(graph, *backend, 2);
  Network evaluation(graph, *backend, 7, Mode::evaluate);
  const LossSums alone = small.step();
  const Floats gradients = small.gradients;
  const Floats prediction = evaluation.forward().counted == 7 ? evaluation.prediction() : Floats{};
  Buffer arena = Buffer::host(std::max({large.executor.arena_bytes(), small.executor.arena_bytes(),
                                        evaluation.executor.arena_bytes()}));
  for (Network* network : {&large, &small, &evaluation}) {
    network->executor.bind(arena.as<std::byte>());
  }
  large.step();
  CHECK(small.step().loss == alone.loss);
  CHECK(small.gradients == gradients);
  evaluation.forward();
  CHECK(evaluation.prediction() == prediction);
}

TEST_CASE("evaluation uses running statistics, drops nothing and needs less memory") {
  const auto backend = make_naive_backend();
  const Graph graph = make_graph(R"([model]
input = [2]
layers = [ { batch_norm = true, epsilon = 1e-12 }, { dropout = 0.5 }, { linear = 1, weight_init = 1 } ]
[loss]
kind = "mean_squared_error"
)");
  Network network(graph, *backend, 2, Mode::evaluate);
  network.statistics = {1, -1, 4, 0.25};  // means, variances
  network.inputs[0] = {3, 0, 5, -1};
  network.targets = {0, 0};
  const LossSums sums = network.forward();
  CHECK(network.prediction() == Floats{1 + 2, 2 + 0});
  CHECK(sums.loss == doctest::Approx(9 + 4));
  CHECK(sums.absolute_error == doctest::Approx(3 + 2));
  Network training(graph, *backend, 2);
  CHECK(network.arena.bytes() < training.arena.bytes());
  CHECK_THROWS_WITH_AS(network.backward(), doctest::Contains("for evaluation"), Error);
}

TEST_CASE("batch sums of shared norms weigh each use by 1 / uses") {
  const auto backend = make_naive_backend();
  const Graph graph = make_graph(R"([model]
input = { x = [1], y = [1] }
layers = [
  { batch_norm = true, from = "x", name = "a" },
  { batch_norm = true, from = "y", name = "b", share = "a" },
  { add = ["a", "b"] },
  { linear = 1 },
]
[loss]
kind = "mean_squared_error"
)");
  Network network(graph, *backend, 2);
  network.inputs[0] = {1, 3};
  network.inputs[1] = {10, 30};
  network.step();
  // 2 samples; means 2 and 20, unbiased variances 2 and 200, half of each use.
  CHECK(network.batch_sums == Floats{2 + 20, 2 + 200});
  CHECK(graph.statistics().size() == 2);
}

TEST_CASE("B01 the gradient of a sum of squares: w = 1, x = 1..10 gives loss 38.5 and slope 77") {
  const auto backend = make_naive_backend();
  const Graph graph = make_graph(R"([model]
input = [1]
layers = [ { linear = 1, bias = false, weight_init = 1 } ]
[loss]
kind = "mean_squared_error"
)");
  double loss = 0;
  double slope = 0;
  float x = 0;
  for (const std::int64_t batch : {3, 3, 4}) {
    Network network(graph, *backend, batch);
    for (float& input : network.inputs[0]) input = ++x;
    network.targets.assign(static_cast<std::size_t>(batch), 0);
    loss += network.forward(1.0 / 10).loss;
    network.backward();
    slope += network.gradients[0];
  }
  CHECK(loss / 10 == doctest::Approx(38.5));
  CHECK(slope == doctest::Approx(77));
}

TEST_CASE("B50 ignored labels leave loss, count and gradients; all ignored is 0, not NaN") {
  const auto backend = make_naive_backend();
  const Graph graph = make_graph(
      "[model]\ninput = [3]\nlayers = [ { linear = 2, bias = false } ]\n[loss]\nignore_index = "
      "255\n");
  Network all(graph, *backend, 4);
  Network part(graph, *backend, 4);
  part.inputs = all.inputs;
  part.labels = {0, 255, 255, 1};
  Network two(graph, *backend, 2);
  two.inputs[0] = {all.inputs[0][0], all.inputs[0][1],  all.inputs[0][2],
                   all.inputs[0][9], all.inputs[0][10], all.inputs[0][11]};
  two.labels = {0, 1};
  const LossSums ignored = part.step();
  const LossSums counted = two.step();
  CHECK(ignored.counted == 2);
  CHECK(ignored.loss == counted.loss);
  CHECK(relative_difference(part.gradients, two.gradients) < 1e-6);
  part.labels = {255, 255, 255, 255};
  const LossSums none = part.step();
  CHECK(none.counted == 0);
  CHECK(none.loss == 0);
  CHECK(part.gradients == Floats(part.gradients.size(), 0.0F));
  // Sums of ranks: 4 samples of mean 1 and 1 of 3 make 1.4.
  LossSums sum{4, 4, {0, 0}, 0};
  sum += LossSums{3, 1, {0, 0}, 0};
  CHECK(sum.loss / sum.counted == doctest::Approx(1.4));
}

TEST_CASE("top-k above the number of classes is not reported") {
  const auto backend = make_naive_backend();
  const Graph graph = make_graph("[model]\ninput = [3]\nlayers = [ { linear = 3 } ]\n");
  Network network(graph, *backend, 6);
  const LossSums sums = network.forward();
  CHECK(sums.correct[0] <= 6);
  CHECK(sums.correct[1] == 6);
}

TEST_CASE("batch norm cannot train on one value a channel, and says which layer") {
  const auto backend = make_naive_backend();
  const Graph graph = make_graph(
      "[model]\ninput = [3]\nlayers = [ { linear = 4 }, { batch_norm = true }, { linear = 2 } ]\n");
  CHECK_THROWS_WITH_AS(Executor(graph, *backend, 1, Mode::train, 1),
                       doctest::Contains("layer batch_norm1: batch norm cannot train on one value"),
                       Error);
  CHECK_NOTHROW(Executor(graph, *backend, 1, Mode::evaluate, 1));
  CHECK_NOTHROW(Executor(graph, *backend, 2, Mode::train, 1));
}

TEST_CASE("an executor without its arena refuses to run") {
  const auto backend = make_naive_backend();
  const Graph graph = make_graph("[model]\ninput = [3]\nlayers = [ { linear = 2 } ]\n");
  Executor executor(graph, *backend, 2, Mode::train, 1);
  const Floats input(6);
  const float* inputs[] = {input.data()};
  CHECK_THROWS_WITH_AS(executor.forward(inputs, {}, {}), doctest::Contains("without its arena"),
                       Error);
  CHECK_THROWS_WITH_AS(executor.loss(nullptr, 1), doctest::Contains("before the first"), Error);
}

}  // namespace annulus
