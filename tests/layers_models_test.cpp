// SPDX-License-Identifier: Apache-2.0
// Well-known networks have their well-known sizes.
#include <algorithm>
#include <string>

#include <doctest/doctest.h>
#include <fmt/core.h>

#include "core/device.h"
#include "core/placement.h"
#include "support/network.h"

namespace annulus {
namespace {

std::string bottleneck(const std::string& name, const std::string& input, int width, int stride,
                       bool project) {
  std::string text;
  if (project) {
    text += fmt::format("{{ conv = {}, stride = {}, bias = false, from = \"{}\" }},\n", 4 * width,
                        stride, input);
    text += fmt::format("{{ batch_norm = true, name = \"{}s\" }},\n", name);
  }
  const char* norm = "{ batch_norm = true, relu = true },\n";
  text += fmt::format("{{ conv = {}, bias = false, from = \"{}\" }},\n{}", width, input, norm);
  text += fmt::format("{{ conv = {}, kernel = 3, padding = 1, stride = {}, bias = false }},\n{}",
                      width, stride, norm);
  text += fmt::format("{{ conv = {}, bias = false }},\n", 4 * width);
  return text + fmt::format(
                    "{{ batch_norm = true, init = 0, relu = true, name = \"{}\", add = "
                    "\"{}{}\" }},\n",
                    name, project ? name : input, project ? "s" : "");
}

// ResNet-50 v1.5: the stride in the 3x3 convolution.
std::string resnet50() {
  std::string text =
      "[model]\ninput = [3, 224, 224]\nclasses = 1000\nlayers = [\n"
      "  { conv = 64, kernel = 7, stride = 2, padding = 3, bias = false },\n"
      "  { batch_norm = true, relu = true },\n"
      "  { max_pool = 3, stride = 2, padding = 1, name = \"b\" },\n";
  std::string before = "b";
  const int blocks[] = {3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage) {
    for (int i = 0; i < blocks[stage]; ++i) {
      const std::string name = fmt::format("b{}.{}", stage, i);
      text += bottleneck(name, before, 64 << stage, stage > 0 && i == 0 ? 2 : 1, i == 0);
      before = name;
    }
  }
  return text + "  { global_avg_pool = true },\n  { linear = 1000 },\n]\n";
}

}  // namespace

TEST_CASE("LeNet-5 has 61,706 parameters and 416,520 multiply-accumulates") {
  const Graph graph = make_graph(R"([model]
input = [1, 28, 28]
classes = 10
layers = [
  { conv = 6, kernel = 5, padding = 2 }, { relu = true }, { max_pool = 2 },
  { conv = 16, kernel = 5 }, { relu = true }, { max_pool = 2 },
  { linear = 120 }, { relu = true }, { linear = 84 }, { relu = true }, { linear = 10 },
]
)");
  CHECK(graph.parameter_elements() == 61706);
  CHECK(graph.macs_per_sample() == 6 * 25 * 784 + 16 * 150 * 100 + 400 * 120 + 120 * 84 + 84 * 10);
}

TEST_CASE("ResNet-20 with projections has 272,474 parameters") {
  const Graph graph = make_graph(R"([model]
input = [3, 32, 32]
classes = 10
layers = [
  { conv = 16, kernel = 3, padding = 1, bias = false },
  { batch_norm = true, relu = true },
  { block = "basic", name = "stage1", width = 16, repeat = 3 },
  { block = "basic", name = "stage2", width = 32, repeat = 3, first = { stride = 2 } },
  { block = "basic", name = "stage3", width = 64, repeat = 3, first = { stride = 2 } },
  { global_avg_pool = true },
  { linear = 10 },
]
[model.blocks.basic]
required = ["width"]
parameters = { stride = 1 }
layers = [
  { conv = "$width", kernel = 1, stride = "$stride", bias = false, when = "$stride > 1", name = "p" },
  { batch_norm = true, when = "$stride > 1", name = "shortcut" },
  { conv = "$width", kernel = 3, stride = "$stride", padding = 1, bias = false, from = "input" },
  { batch_norm = true, relu = true },
  { conv = "$width", kernel = 3, padding = 1, bias = false },
  { batch_norm = true, add = "shortcut", relu = true },
]
)");
  CHECK(graph.parameter_elements() == 272474);
}

TEST_CASE("ResNet-50 has 25,557,032 parameters and 4.089e9 multiply-accumulates") {
  const Graph graph = make_graph(resnet50());
  CHECK(graph.parameter_elements() == 25557032);
  CHECK(static_cast<double>(graph.macs_per_sample()) == doctest::Approx(4.089e9).epsilon(0.005));
  CHECK(graph.statistic_elements() == 2 * 26560);
  CHECK(graph.nodes().size() == 53 + 53 + 3);
  const auto& values = graph.values();
  const auto value = [&](const std::string& name) {
    return std::find_if(values.begin(), values.end(), [&](auto& v) { return v.name == name; })
        ->shape;
  };
  CHECK(value("b") == Shape{64, 56, 56});
  CHECK(value("b0.2") == Shape{256, 56, 56});
  CHECK(value("b1.3") == Shape{512, 28, 28});
  CHECK(value("b2.5") == Shape{1024, 14, 14});
  CHECK(value("b3.2") == Shape{2048, 7, 7});
}

TEST_CASE("ResNet-50 at 224x224, batch 16, trains in an arena of at most 1.75 GB on the CPU") {
  const auto device = make_cpu_device(Placement{});
  const auto backend = make_cpu_backend(*device);
  const Graph graph = make_graph(resnet50());
  const Executor train(graph, *backend, 16, Mode::train, 1);
  CHECK(train.arena_bytes() <= 1'750'000'000);
  const Executor evaluate(graph, *backend, 16, Mode::evaluate, 1);
  CHECK(evaluate.arena_bytes() <= 300'000'000);
  MESSAGE("train ", train.arena_bytes(), " bytes, evaluate ", evaluate.arena_bytes(), ", backend ",
          backend->bytes());
}

}  // namespace annulus
