// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/core.h>

#include "layers/graph.h"
#include "support/network.h"

namespace annulus {
namespace {

std::string model(const std::string& layers, const std::string& input = "[1, 8, 8]") {
  return "[model]\ninput = " + input + "\nlayers = [\n" + layers + "\n]\n";
}

bool has(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) MESSAGE("not in: ", text);
  return found;
}

std::vector<std::string> node_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Graph::Node& node : graph.nodes()) names.push_back(node.name);
  return names;
}

std::vector<std::string> parameter_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Graph::Parameter& parameter : graph.parameters()) names.push_back(parameter.name);
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("shapes go through a chain, B13 non-square images keep their axes") {
  const Graph graph =
      make_graph(model("{ conv = 4, kernel = [3, 1], padding = [0, 1] }, { max_pool = [1, 2] }, "
                       "{ global_avg_pool = true }, { flatten = true }",
                       "[2, 9, 5]"));
  CHECK(graph.values()[0].shape == Shape{2, 9, 5});
  CHECK(graph.values()[1].shape == Shape{4, 7, 7});
  CHECK(graph.values()[2].shape == Shape{4, 7, 3});
  CHECK(graph.values()[3].shape == Shape{4, 1, 1});
  CHECK(graph.values()[4].shape == Shape{4});
  CHECK(graph.classes() == 4);
  CHECK(graph.macs_per_sample() == 4 * 2 * 3 * 1 * 7 * 7);
}

TEST_CASE("parameters lie last layer first, each at a multiple of 64 bytes") {
  const Graph graph = make_graph(
      model("{ conv = 2, kernel = 3 }, { batch_norm = true }, { linear = 3, bias = false }"));
  CHECK(parameter_names(graph) == Names{"linear1/weight", "batch_norm1/scale", "batch_norm1/shift",
                                        "conv1/weight", "conv1/bias"});
  std::int64_t end = 0;
  for (const Graph::Parameter& parameter : graph.parameters()) {
    CHECK(parameter.offset == end);
    CHECK(parameter.offset % 16 == 0);
    CHECK(parameter.elements == parameter.spec.shape.elements());
    CHECK(parameter.room >= parameter.elements);
    end += parameter.room;
  }
  CHECK(graph.parameter_elements() == 3 * 72 + 2 + 2 + 18 + 2);
  CHECK(graph.flat_elements() == end);
  CHECK(end == 224 + 16 + 16 + 32 + 16);
  CHECK(graph.statistics()[0].name == "batch_norm1/running_mean");
  CHECK(graph.statistics()[1].offset == 2);
  CHECK(graph.statistic_elements() == 4);
}

TEST_CASE("weight decay is for weights, not for biases and norms") {
  const Graph graph = make_graph(model("{ conv = 2 }, { batch_norm = true }, { linear = 3 }"));
  for (const Graph::Parameter& parameter : graph.parameters()) {
    CAPTURE(parameter.name);
    CHECK(parameter.spec.decay == parameter.name.ends_with("/weight"));
  }
}

TEST_CASE("B82 a kernel larger than its input names the layer, both sizes and the shapes so far") {
  const std::string text = problems_of(
      model("{ conv = 16, kernel = 3, padding = 1 }, { max_pool = 2 }, { max_pool = 4 }, "
            "{ max_pool = 3, name = \"pool3\" }, { linear = 2 }"));
  CHECK(has(text,
            "layer pool3: kernel 3 > padded input 1; shapes so far: input 1x8x8, conv1 16x8x8, "
            "max_pool1 16x4x4, max_pool2 16x1x1"));
  CHECK(text.find('\n') == std::string::npos);
  CHECK(has(text, "model.toml:4:"));
  const std::string deep = problems_of(
      model("{ max_pool = 2 }, { max_pool = 2 }, { max_pool = 2 }, { relu = true }, "
            "{ relu = true }, { relu = true }, { relu = true }, { conv = 2, kernel = 2 }"));
  CHECK(has(deep, "shapes so far: ..., max_pool2 1x2x2, max_pool3 1x1x1, relu1"));
}

TEST_CASE("B82 odd sizes go through chains of convolutions and pools") {
  for (std::int64_t size : {1, 2, 3, 5, 7, 13, 17, 31}) {
    CAPTURE(size);
    const Graph graph = make_graph(
        model("{ conv = 1, kernel = 3, stride = 2, padding = 1 }, { max_pool = 3, stride = 2, "
              "padding = 1 }, { conv = 1, kernel = 3, stride = 2, padding = \"same\" }, "
              "{ global_avg_pool = true }, { linear = 1 }",
              fmt::format("[1, {0}, {0}]", size)));
    const auto half = [](std::int64_t n) { return (n + 1) / 2; };
    CHECK(graph.values()[1].shape[1] == half(size));
    CHECK(graph.values()[2].shape[1] == half(half(size)));
    CHECK(graph.values()[3].shape[2] == half(half(half(size))));
  }
}

TEST_CASE("names: unknown, doubled and later ones are problems with a guess") {
  CHECK(has(problems_of(model("{ conv = 2, name = \"first\" }, { relu = true, from = \"fisrt\" }")),
            "layer relu1: no layer or input is called 'fisrt'; did you mean 'first'?"));
  CHECK(has(problems_of(model("{ relu = true, from = \"b\" }, { relu = true, name = \"b\" }")),
            "layer relu1: 'b' is not before it"));
  CHECK(has(problems_of(model("{ relu = true, name = \"a\" }, { relu = true, name = \"a\" }")),
            "layer a: an input or another layer has the same name"));
  CHECK(has(problems_of(model("{ relu = true, name = \"input\" }")), "same name"));
}

TEST_CASE("one problem gives one message, and others are still found") {
  const std::string text = problems_of(
      model("{ max_pool = 9 },\n{ relu = true },\n{ linear = 3, name = \"end\" },\n"
            "{ conv = 2, from = \"input\", kernel = 99 },\n{ relu = true, from = \"nowhere\" }"));
  CHECK(std::count(text.begin(), text.end(), '\n') == 2);
  CHECK(has(text, "layer max_pool1: kernel 9 > padded input 8"));
  CHECK(has(text, "layer conv1: kernel 99 > padded input 8"));
  CHECK(has(text, "layer relu2: no layer or input"));
}

TEST_CASE("a layer that nobody reads is a problem, and so is an input") {
  CHECK(has(problems_of(model("{ linear = 2, name = \"lost\" }, { linear = 2, from = \"input\" }")),
            "layer lost: no layer reads it"));
  CHECK(has(problems_of(model("{ linear = 2, from = \"left\" }", "{ left = [3], right = [4] }")),
            "no layer reads input right"));
  CHECK(has(problems_of(model("{ linear = 2 }", "{ left = [3], right = [4] }")),
            "layer linear1: the model has 2 inputs"));
}

TEST_CASE("shapes that do not fit a layer") {
  CHECK(has(problems_of(model("{ conv = 2 }", "[9]")), "layer conv1: takes an image"));
  CHECK(has(problems_of(model("{ conv = 2, name = \"a\" }, { add = [\"a\", \"input\"] }")),
            "layer add1: adds shapes that differ: 2x8x8 and 1x8x8"));
  CHECK(has(problems_of(model("{ max_pool = 2, name = \"a\" }, { concat = [\"a\", \"input\"] }")),
            "layer concat1: joins shapes that differ in more than channels: 1x4x4 and 1x8x8"));
  CHECK(has(problems_of(model("{ conv = 2 }, { batch_norm = true, add = \"input\" }")),
            "layer batch_norm1: adds shapes that differ: 2x8x8 and 1x8x8"));
  CHECK(has(problems_of(model("{ linear = 2147483647 }, { linear = 2147483647 }")),
            "layer linear2: a weight of shape 2147483647x2147483647 is too large"));
}

TEST_CASE("the last layer must give what the loss needs") {
  CHECK(has(problems_of("[model]\ninput = [4]\nclasses = 10\nlayers = [ { linear = 9 } ]\n"),
            "layer linear1: the loss needs 10 numbers a sample, one a class, not a shape of 9"));
  CHECK(has(problems_of(model("{ conv = 4 }, { global_avg_pool = true }")),
            "{ flatten = true } may be missing"));
  CHECK(problems_of(model("{ conv = 4 }") + "[loss]\nkind = \"mean_squared_error\"\n") == "");
  CHECK(has(problems_of("[model]\nlayers = [ { linear = 9 } ]\n"), "missing key 'input'"));
}

TEST_CASE("shared layers use the parameters of the first, which are ready after the last use") {
  const Graph graph = make_graph(
      model("{ linear = 4, name = \"a\" }, { linear = 4, name = \"b\", share = \"a\" }, "
            "{ linear = 2, name = \"end\" }, { linear = 2, name = \"c\", from = \"b\", share = "
            "\"end\" }, { add = [\"end\", \"c\"] }",
            "[4]"));
  CHECK(parameter_names(graph) == Names{"end/weight", "end/bias", "a/weight", "a/bias"});
  CHECK(graph.nodes()[1].parameters == graph.nodes()[0].parameters);
  CHECK(graph.nodes()[0].uses == 2);
  CHECK(graph.nodes()[3].uses == 2);
  CHECK(graph.parameter_elements() == 4 * 4 + 4 + 2 * 4 + 2);
}

TEST_CASE("only layers of one kind and shape share parameters") {
  CHECK(has(problems_of(model("{ linear = 4, name = \"a\" }, { linear = 5, share = \"a\" }")),
            "layer linear2: cannot share the parameters of a (a linear with weight 4x64, bias 4): "
            "it is a linear with weight 5x4, bias 5"));
  CHECK(has(problems_of(model("{ linear = 4, share = \"b\" }")), "'share': no layer or input"));
  CHECK(has(problems_of(model("{ relu = true, name = \"a\" }, { relu = true, share = \"a\" }")),
            "layer relu2: has no parameters to share"));
}

TEST_CASE("a batch norm takes over the sum and the ReLU behind it, and keeps its name") {
  const Graph graph = make_graph(
      model("{ conv = 2, name = \"c\" }, { batch_norm = true }, { relu = true, name = \"r\" }, "
            "{ conv = 2 }, { batch_norm = true }, { add = [\"batch_norm2\", \"r\"] }, "
            "{ relu = true }, { linear = 2 }"));
  CHECK(node_names(graph) == Names{"c", "batch_norm1", "conv2", "batch_norm2", "linear1"});
  CHECK(graph.nodes()[3].inputs == std::vector<int>{3, 2});
  CHECK(graph.nodes()[2].inputs == std::vector<int>{2});
  CHECK(graph.values()[2].readers == std::vector<int>{2, 3});
  CHECK(graph.values()[4].name == "batch_norm2");
  CHECK(graph.values().size() == 6);
  CHECK(graph.output() == 5);
}

TEST_CASE("nothing is fused where somebody else reads the part, or it is the output") {
  const Graph read_twice = make_graph(
      model("{ batch_norm = true }, { relu = true }, { add = [\"relu1\", \"batch_norm1\"] }, "
            "{ linear = 2 }"));
  CHECK(node_names(read_twice) == Names{"batch_norm1", "relu1", "add1", "linear1"});
  const Graph both = make_graph(
      model("{ batch_norm = true, name = \"a\" }, { batch_norm = true, name = \"b\", from = "
            "\"input\" }, { add = [\"a\", \"b\"] }, { linear = 2 }"));
  CHECK(node_names(both) == Names{"a", "b", "linear1"});
  CHECK(both.nodes()[1].inputs == std::vector<int>{0, 1});
  const Graph first = make_graph(
      model("{ batch_norm = true, relu = true, name = \"a\" }, { add = [\"a\", \"input\"] }, "
            "{ linear = 2 }"));
  CHECK(node_names(first) == Names{"a", "add1", "linear1"});
}

TEST_CASE("a fused norm that moves behind a layer sharing its parameters finishes last") {
  const Graph graph = make_graph(
      model("{ batch_norm = true, name = \"a\" }, { batch_norm = true, name = \"b\", from = "
            "\"input\", share = \"a\" }, { conv = 1, name = \"c\" }, { add = [\"a\", \"c\"] }, "
            "{ linear = 2 }"));
  CHECK(node_names(graph) == Names{"b", "c", "a", "linear1"});
  CHECK(parameter_names(graph) ==
        Names{"linear1/weight", "linear1/bias", "c/weight", "c/bias", "a/scale", "a/shift"});
}

}  // namespace annulus
