// SPDX-License-Identifier: Apache-2.0
// Whole networks on the CPU backend against the naive reference.
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/core.h>

#include "core/device.h"
#include "core/placement.h"
#include "support/naive_backend.h"
#include "support/network.h"

namespace annulus {
namespace {

struct Cpu {
  std::unique_ptr<DeviceContext> device = make_cpu_device(Placement{});
  std::unique_ptr<Backend> backend = make_cpu_backend(*device);
};

double gradient_difference(const Graph& graph, const Network& a, const Network& b) {
  double largest = 0;
  for (const Graph::Parameter& p : graph.parameters()) {
    const auto part = [&](const Floats& flat) {
      const auto begin = flat.begin() + p.offset;
      return Floats(begin, begin + p.elements);
    };
    // Gradients that are nothing but rounding (of a bias before a norm) have no size of their own.
    Floats expected = part(b.gradients);
    Floats found = part(a.gradients);
    expected.push_back(1e-2F);
    found.push_back(1e-2F);
    const double difference = relative_difference(found, expected);
    if (difference > 1e-3) MESSAGE(p.name, " differs by ", difference);
    largest = std::max(largest, difference);
  }
  return largest;
}

// Training and evaluation of one network on both.
void compare(const std::string& text, std::int64_t batch) {
  const Cpu cpu;
  const auto naive = make_naive_backend();
  const Graph graph = make_graph(text);
  Network subject(graph, *cpu.backend, batch);
  Network reference(graph, *naive, batch);
  const LossSums found = subject.step();
  const LossSums expected = reference.step();
  CHECK(found.loss == doctest::Approx(expected.loss).epsilon(1e-4));
  CHECK(found.counted == expected.counted);
  CHECK(relative_difference(subject.prediction(), reference.prediction()) < 1e-4);
  CHECK(gradient_difference(graph, subject, reference) < 1e-3);
  CHECK(relative_difference(subject.batch_sums, reference.batch_sums) < 1e-4);

  Network separate(graph, *cpu.backend, batch, Mode::train, MemoryMode::separate);
  separate.step();
  CHECK(separate.prediction() == subject.prediction());
  CHECK(separate.gradients == subject.gradients);

  Network evaluated(graph, *cpu.backend, batch, Mode::evaluate);
  Network evaluated_reference(graph, *naive, batch, Mode::evaluate);
  evaluated.forward();
  evaluated_reference.forward();
  CHECK(relative_difference(evaluated.prediction(), evaluated_reference.prediction()) < 1e-4);
}

std::string image(std::int64_t channels, std::int64_t h, std::int64_t w) {
  return fmt::format("[model]\ninput = [{}, {}, {}]\nlayers = [\n", channels, h, w);
}

}  // namespace

TEST_CASE("B82 all odd sizes agree with the reference, forward and backward") {
  for (const std::int64_t size : {1, 2, 3, 5, 7, 13, 17, 31}) {
    CAPTURE(size);
    compare(image(3, size, size) +
                "{ conv = 5, kernel = 3, stride = 2, padding = 1 }, { relu = true }, "
                "{ max_pool = 3, stride = 2, padding = 1 }, { conv = 9, kernel = 3, padding = "
                "\"same\", stride = 2 }, { avg_pool = 2, padding = 1, ceil_mode = true }, "
                "{ linear = 4 } ]\n",
            2);
  }
}

TEST_CASE("B82 one channel, one class, one sample") {
  compare(image(1, 5, 5) + "{ conv = 1, kernel = 3 }, { relu = true }, { linear = 1 } ]\n", 1);
  compare(image(1, 1, 1) + "{ linear = 1 } ]\n", 1);
}

TEST_CASE("B65 grouped and depthwise networks agree with the reference") {
  for (const std::int64_t channels : {1, 7, 8, 16, 23, 24, 25}) {
    CAPTURE(channels);
    const std::string text = fmt::format(
        "{{ conv = {0}, kernel = 3, groups = {0}, stride = 2, padding = 1 }}, {{ batch_norm = "
        "true, "
        "relu = true }}, {{ conv = 6 }}, {{ conv = 6, kernel = 3, groups = 2, padding = 1 }}, "
        "{{ global_avg_pool = true }}, {{ flatten = true }}, {{ linear = 3 }} ]\n",
        channels);
    compare(image(channels, 9, 5 + channels % 13) + text, 3);
  }
}

TEST_CASE("residual networks agree with the reference") {
  compare(image(3, 11, 9) + R"(
  { conv = 12, kernel = 3, padding = 1, bias = false },
  { batch_norm = true, relu = true, name = "in" },
  { conv = 20, kernel = 1, stride = 2, bias = false },
  { batch_norm = true, name = "shortcut" },
  { conv = 20, kernel = 3, stride = 2, padding = 1, bias = false, from = "in" },
  { batch_norm = true, relu = true },
  { conv = 20, kernel = 3, padding = 1, bias = false },
  { batch_norm = true, add = "shortcut", relu = true, name = "b1" },
  { conv = 20, kernel = 3, padding = 2, dilation = 2, bias = false },
  { batch_norm = true },
  { add = ["batch_norm5", "b1"] },
  { relu = true },
  { conv = 20, kernel = 1 },
  { add = ["conv6", "relu1", "b1"] },
  { global_avg_pool = true },
  { linear = 5 } ]
)",
          4);
}

TEST_CASE("branches, concat, views and shared layers agree with the reference") {
  compare(R"([model]
input = { a = [3, 8, 8], b = [3, 8, 8], c = [7] }
layers = [
  { conv = 10, kernel = 3, from = "a", name = "ca" },
  { batch_norm = true, relu = true, name = "na" },
  { conv = 10, kernel = 3, from = "b", share = "ca", name = "cb" },
  { batch_norm = true, relu = true, share = "na", name = "nb" },
  { concat = ["na", "nb"], name = "both" },
  { max_pool = 2, name = "m" },
  { avg_pool = 2, from = "both", name = "v" },
  { concat = ["m", "v", "m"] },
  { conv = 6, kernel = 1 },
  { softmax = true },
  { flatten = true, name = "f" },
  { linear = 11, from = "c" },
  { relu = true },
  { dropout = 0.3, name = "d" },
  { concat = ["f", "d"] },
  { linear = 4 },
]
[loss]
label_smoothing = 0.1
ignore_index = 1
)",
          5);
}

TEST_CASE("predictions in a layout of the backend's own come out plain") {
  compare(image(3, 7, 6) +
              "{ conv = 19, kernel = 3, padding = 1 }, { relu = true }, { conv = 19, kernel = 3 } "
              "]\n[loss]\nkind = \"mean_squared_error\"\n",
          2);
  compare(
      "[model]\ninput = [13]\nlayers = [ { flatten = true } ]\n[loss]\nkind = "
      "\"mean_squared_error\"\n",
      3);
}

}  // namespace annulus
