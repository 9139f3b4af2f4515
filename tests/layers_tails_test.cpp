// SPDX-License-Identifier: Apache-2.0
// Evaluation with batch norm, sum and ReLU done by the convolution before them, against each node
// on its own: another rounding, the same network.
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/device.h"
#include "core/placement.h"
#include "layers/tails.h"
#include "support/network.h"

namespace annulus {
namespace {

struct Cpu {
  explicit Cpu(bool tails) : backend(make_cpu_backend(*device, BackendOptions{.tails = tails})) {}
  std::unique_ptr<DeviceContext> device = make_cpu_device(Placement{});
  std::unique_ptr<Backend> backend;
};

// Every form of a tail; odd sizes, groups, bias, a sum whose other side lives on, and one whose
// does not.
const char* const model_text = R"([model]
input = [3, 13, 11]
classes = 5
layers = [
  { conv = 24, kernel = 3, padding = 1, bias = false, name = "stem" },
  { batch_norm = true, relu = true, name = "stem_norm" },
  { conv = 24, kernel = 3, padding = 1, groups = 3, name = "grouped" },
  { batch_norm = true, epsilon = 1e-3, name = "grouped_norm" },
  { conv = 24, kernel = 3, padding = 1, groups = 24, bias = false, name = "depthwise" },
  { batch_norm = true, name = "depthwise_norm" },
  { add = ["stem_norm", "depthwise_norm"], name = "sum" },
  { relu = true, name = "sum_relu" },
  { conv = 10, kernel = 1, stride = 2, name = "odd" },
  { relu = true, name = "odd_relu" },
  { conv = 10, kernel = 1, name = "plain" },
  { batch_norm = true, name = "last_norm" },
  { flatten = true },
  { linear = 5, name = "classes" },
]
)";

// Statistics as training leaves them: means of both signs, variances above 0.
void set_statistics(Network& network) {
  for (const Graph::Statistic& statistic : network.graph.statistics()) {
    for (std::int64_t i = 0; i < statistic.elements; ++i) {
      float& value = network.statistics[static_cast<std::size_t>(statistic.offset + i)];
      const float random = static_cast<float>(std::sin(static_cast<double>(statistic.offset + i)));
      value = statistic.name.ends_with("variance") ? 0.2F + random * random : random;
    }
  }
}

Floats evaluate(const Graph& graph, Backend& backend, std::int64_t batch) {
  Network network(graph, backend, batch, Mode::evaluate);
  set_statistics(network);
  network.forward();
  return network.prediction();
}

std::vector<std::string> done_by_others(const Graph& graph, const Executor& executor) {
  std::vector<std::string> names;
  const auto report = executor.report();
  for (std::size_t n = 0; n < report.size(); ++n) {
    if (report[n].implementation.empty()) names.push_back(graph.nodes()[n].name);
  }
  return names;
}

}  // namespace

TEST_CASE("a network evaluated with tails gives the numbers of one without, at any batch size") {
  const Graph graph = make_graph(model_text);
  const Cpu fused(true);
  const Cpu apart(false);
  for (const std::int64_t batch : {1, 2, 7, 16}) {
    CAPTURE(batch);
    const Floats expected = evaluate(graph, *apart.backend, batch);
    CHECK(relative_difference(evaluate(graph, *fused.backend, batch), expected) < 2e-6);
  }
}

TEST_CASE("each convolution goes with what follows it, unless others read it too") {
  const Graph graph = make_graph(model_text);
  const Cpu fused(true);
  const Cpu apart(false);
  const Network network(graph, *fused.backend, 2, Mode::evaluate);
  CHECK(done_by_others(graph, network.executor) ==
        std::vector<std::string>{"stem", "grouped", "depthwise", "odd", "plain"});
  CHECK(done_by_others(graph, Network(graph, *apart.backend, 2, Mode::evaluate).executor).empty());
  CHECK(done_by_others(graph, Network(graph, *fused.backend, 2).executor).empty());

  const Graph branches = make_graph(
      "[model]\ninput = [4, 6, 6]\nclasses = 3\nlayers = [ { conv = 8, kernel = 1, name = \"c\" }, "
      "{ relu = true, name = \"r\" }, { add = [\"r\", \"c\"] }, { flatten = true }, { linear = 3 } "
      "]\n");
  CHECK(find_tails(branches) == std::vector<int>(branches.nodes().size(), -1));
  const Graph shared = make_graph(
      "[model]\ninput = [8, 6, 6]\nclasses = 3\nlayers = [ { conv = 8, kernel = 1, name = \"c\" }, "
      "{ relu = true }, { conv = 8, kernel = 1, share = \"c\" }, { relu = true }, { flatten = true "
      "}, { linear = 3 } ]\n");
  CHECK(find_tails(shared) == std::vector<int>(shared.nodes().size(), -1));
}

TEST_CASE("folded weights follow the weights and the statistics") {
  const Graph graph = make_graph(model_text);
  const Cpu fused(true);
  Network network(graph, *fused.backend, 3, Mode::evaluate);
  set_statistics(network);
  network.context.weights_version = 1;
  network.forward();
  const Floats before = network.prediction();
  for (float& weight : network.weights) weight *= 0.5F;
  for (float& statistic : network.statistics) statistic += 0.25F;
  network.context.weights_version = 2;
  network.forward();
  CHECK(network.prediction() != before);

  const Cpu apart(false);
  Network reference(graph, *apart.backend, 3, Mode::evaluate);
  set_statistics(reference);
  for (float& weight : reference.weights) weight *= 0.5F;
  for (float& statistic : reference.statistics) statistic += 0.25F;
  reference.context.weights_version = 2;
  reference.forward();
  CHECK(relative_difference(network.prediction(), reference.prediction()) < 2e-6);
}

TEST_CASE(
    "a residual network evaluated with tails, in the least memory and with each value apart") {
  const Graph graph = make_graph(R"([model]
input = [3, 32, 32]
classes = 10
layers = [
  { conv = 16, kernel = 3, padding = 1, bias = false },
  { batch_norm = true, relu = true, name = "a" },
  { conv = 16, kernel = 3, padding = 1, bias = false },
  { batch_norm = true, relu = true },
  { conv = 16, kernel = 3, padding = 1, bias = false },
  { batch_norm = true, relu = true, add = "a", name = "b" },
  { conv = 32, kernel = 1, stride = 2, bias = false },
  { batch_norm = true, name = "side" },
  { conv = 32, kernel = 3, stride = 2, padding = 1, bias = false, from = "b" },
  { batch_norm = true, relu = true, add = "side", name = "c" },
  { conv = 32, kernel = 3, padding = 1, bias = false },
  { batch_norm = true, relu = true, add = "c" },
  { global_avg_pool = true },
  { linear = 10 },
]
)");
  const Cpu fused(true);
  const Cpu apart(false);
  const auto logits = [&](Backend& backend, MemoryMode memory) {
    Network network(graph, backend, 4, Mode::evaluate, memory);
    set_statistics(network);
    network.forward();
    return network.prediction();
  };
  const Floats expected = logits(*apart.backend, MemoryMode::planned);
  const Floats found = logits(*fused.backend, MemoryMode::planned);
  CHECK(relative_difference(found, expected) < 1e-5);
  CHECK(logits(*fused.backend, MemoryMode::separate) == found);
}

}  // namespace annulus
