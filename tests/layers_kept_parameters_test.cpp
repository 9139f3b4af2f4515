// SPDX-License-Identifier: Apache-2.0
// Parameters in the order that the backend's primitives want: the same network as with plain ones.
#include <algorithm>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include "core/device.h"
#include "core/placement.h"
#include "layers/cpu_isa.h"
#include "support/network.h"

namespace annulus {
namespace {

const char* const model_text = R"([model]
input = [3, 13, 12]
classes = 5
layers = [
  { conv = 32, kernel = 3, padding = 1, bias = false, name = "a" },
  { batch_norm = true, relu = true },
  { conv = 32, kernel = 3, padding = 1, groups = 2 },
  { conv = 48, kernel = 1 },
  { relu = true },
  { conv = 48, kernel = 3, stride = 2, padding = 1, groups = 48 },
  { conv = 20, kernel = 1, name = "odd" },
  { max_pool = 2 },
  { flatten = true },
  { linear = 64, name = "wide" },
  { linear = 64, share = "SHARED" },
  { linear = 5 },
]
)";

struct Cpu {
  std::unique_ptr<DeviceContext> device = make_cpu_device(Placement{});
  std::unique_ptr<Backend> backend = make_cpu_backend(*device);
};

void choose(const Graph& graph, Backend& backend, std::int64_t batch) {
  backend.choose_parameter_layouts(true);
  const Executor chooser(graph, backend, batch, Mode::train, 1);
  backend.choose_parameter_layouts(false);
}

int count_kept(const Graph& graph, const Backend& backend) {
  int count = 0;
  for (int i = 0; i < static_cast<int>(graph.parameters().size()); ++i)
    count += backend.parameter_layout(i) != nullptr ? 1 : 0;
  return count;
}

// Flat buffers from the plain order to the kept one, or back.
Floats converted(const Graph& graph, const Backend& backend, Floats flat, bool pack) {
  for (int i = 0; i < static_cast<int>(graph.parameters().size()); ++i) {
    const ParameterLayout* layout = backend.parameter_layout(i);
    const Graph::Parameter& p = graph.parameters()[static_cast<std::size_t>(i)];
    if (layout == nullptr) continue;
    const auto begin = flat.begin() + p.offset;
    const Floats before(begin, begin + p.elements);
    if (pack) {
      layout->pack(before.data(), &*begin);
    } else {
      layout->unpack(before.data(), &*begin);
    }
  }
  return flat;
}

Graph graph_of(const std::string& shared) {
  std::string text = model_text;
  text.replace(text.find(", share = \"SHARED\""), 18, shared);
  return make_graph(text);
}

// Batches of the chosen size and of others, which then have to follow the choice.
void compare(const Graph& graph) {
  const Cpu plain;
  const Cpu kept;
  choose(graph, *kept.backend, 6);
  CHECK(count_kept(graph, *plain.backend) == 0);
  CHECK(count_kept(graph, *kept.backend) >= 3);
  for (std::int64_t batch : {6, 5, 1}) {
    CAPTURE(batch);
    Network reference(graph, *plain.backend, batch);
    Network subject(graph, *kept.backend, batch);
    subject.weights = converted(graph, *kept.backend, subject.weights, true);
    const LossSums expected = reference.step();
    const LossSums found = subject.step();
    CHECK(found.loss == expected.loss);
    CHECK(subject.prediction() == reference.prediction());
    CHECK(converted(graph, *kept.backend, subject.gradients, false) == reference.gradients);

    Network evaluated(graph, *kept.backend, batch, Mode::evaluate);
    Network expected_values(graph, *plain.backend, batch, Mode::evaluate);
    evaluated.weights = subject.weights;
    evaluated.forward();
    expected_values.forward();
    CHECK(evaluated.prediction() == expected_values.prediction());
  }
}

}  // namespace

TEST_CASE("a network with kept parameters gives the bits of one with plain ones") {
  compare(graph_of(""));
}

TEST_CASE("layers that share parameters share their order") {
  const Graph shared = make_graph(
      "[model]\ninput = [32, 9, 9]\nclasses = 4\nlayers = [ { conv = 32, kernel = 3, padding = 1, "
      "name = \"c\" }, { relu = true }, { conv = 32, kernel = 3, padding = 1, share = \"c\" }, "
      "{ conv = 16, kernel = 1 }, { conv = 32, kernel = 1 }, { flatten = true }, { linear = 4 } "
      "]\n");
  compare(shared);
}

TEST_CASE("pack and unpack are each other's inverse and lose nothing") {
  const Graph graph = graph_of("");
  const Cpu cpu;
  choose(graph, *cpu.backend, 6);
  for (int i = 0; i < static_cast<int>(graph.parameters().size()); ++i) {
    const ParameterLayout* layout = cpu.backend->parameter_layout(i);
    if (layout == nullptr) continue;
    const auto count =
        static_cast<std::size_t>(graph.parameters()[static_cast<std::size_t>(i)].elements);
    CAPTURE(graph.parameters()[static_cast<std::size_t>(i)].name);
    Floats numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0.0F);
    Floats kept(count);
    Floats back(count);
    layout->pack(numbers.data(), kept.data());
    layout->unpack(kept.data(), back.data());
    CHECK(back == numbers);
    CHECK(kept != numbers);
    std::sort(kept.begin(), kept.end());
    CHECK(kept == numbers);
  }
}

}  // namespace annulus
