// SPDX-License-Identifier: Apache-2.0
// Layer tables as written: kinds, keys, ranges, names.
#include <doctest/doctest.h>

#include "support/network.h"

namespace annulus {
namespace {

// What is wrong with one layer on line 4 of a config, after a 3x8x8 input.
std::string layer_problems(const std::string& layer) {
  return problems_of("[model]\ninput = [3, 8, 8]\nlayers = [\n" + layer +
                     ",\n  { linear = 4 },\n]\n");
}

bool has(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) MESSAGE("not in: ", text);
  return found;
}

}  // namespace

TEST_CASE("a legal layer of each kind has no problems") {
  const std::string conv =
      "{ conv = 6, kernel = [3, 1], stride = 2, padding = \"same\", dilation = 1, groups = 3, bias "
      "= false, weight_init = \"xavier\", bias_init = 0.5, name = \"a\" }";
  const std::string pool =
      "{ avg_pool = [2, 3], stride = 1, padding = 1, ceil_mode = true, count_include_pad = true }";
  using text = std::string;
  for (const std::string& layer :
       {conv, pool, text("{ linear = 7, bias = false }"),
        text("{ batch_norm = true, epsilon = 1e-3, momentum = 1 }"),
        text("{ batch_norm = true, relu = true, init = 0 }"), text("{ max_pool = 2 }"),
        text("{ global_avg_pool = true }"), text("{ relu = true }"), text("{ dropout = 0 }"),
        text("{ softmax = true }"), text("{ add = [\"input\", \"input\"] }"),
        text("{ concat = [\"input\", \"input\"] }"), text("{ flatten = true }"),
        text("{ relu = true, from = \"input\" }"),
        text("{ batch_norm = true, add = \"input\" }")}) {
    CAPTURE(layer);
    CHECK(layer_problems(layer) == "");
  }
}

TEST_CASE("B58 wrong types and ranges of layer keys name place, key, range and value") {
  struct Case {
    const char* layer;
    const char* message;
  };
  for (const Case& c : {
           Case{"{ conv = 0 }", "'conv' must be integer >= 1 and <= 2147483647, not 0"},
           Case{"{ conv = 2.5 }", "'conv' must be integer >= 1"},
           Case{"{ conv = \"16\" }", "not \"16\""},
           Case{"{ conv = 8, kernel = 0 }", "'kernel' must be integer from 1 to 1048576 or [h, w]"},
           Case{"{ conv = 8, kernel = [3] }", "not [3]"},
           Case{"{ conv = 8, kernel = [3, -1] }", "not [3, -1]"},
           Case{"{ conv = 8, kernel = 4294967297 }", "not 4294967297"},
           Case{"{ conv = 8, stride = 0 }", "'stride' must be integer from 1"},
           Case{"{ conv = 8, dilation = 0 }", "'dilation' must be integer from 1"},
           Case{"{ conv = 8, padding = -1 }", "'padding' must be integer from 0"},
           Case{"{ conv = 8, padding = \"sam\" }", "[h, w] or \"same\", not \"sam\""},
           Case{"{ conv = 8, groups = 3 }", "'groups' = 3 must divide the 8 output channels"},
           Case{"{ conv = 8, groups = 4 }", "'groups' = 4 must divide the 3 input channels"},
           Case{"{ dropout = 1.0 }", "'dropout' must be number >= 0 and < 1, not 1"},
           Case{"{ dropout = -0.1 }", "not -0.1"},
           Case{"{ dropout = nan }", "not nan"},
           Case{"{ relu = false }", "'relu' must be true, not false"},
           Case{"{ batch_norm = true, momentum = 1.5 }", "'momentum' must be number >= 0 and <= 1"},
           Case{"{ batch_norm = true, epsilon = 0 }", "'epsilon' must be number > 0"},
           Case{"{ batch_norm = true, add = \"\" }", "'add' must name a layer"},
           Case{"{ linear = 4, weight_init = \"hee\" }", "'weight_init' must be number"},
           Case{"{ linear = 4, weight_init = { kind = \"he\", std = 1 } }",
                "'std' in [weight_init]"},
           Case{"{ linear = 4, weight_init = { kind = \"normal\", std = -1 } }", "'std' must be"},
           Case{"{ linear = 4, weight_init = inf }", "not inf"},
           Case{"{ relu = true, from = [] }", "'from' must be the name"},
           Case{"{ relu = true, name = \"a/b\" }", "'name' must be letters"},
           Case{"{ add = [\"input\"] }", "takes 2 to 64 inputs, not 1"},
           Case{"{ add = [\"input\", \"input\"], from = \"input\" }", "both name the inputs"},
           Case{"{ relu = true, from = [\"input\", \"input\"] }", "takes 1 input, not 2"},
           Case{"16", "a layer must be a table, not 16"},
       }) {
    CAPTURE(c.layer);
    const std::string text = layer_problems(c.layer);
    CHECK(has(text, "model.toml:4:"));
    CHECK(has(text, c.message));
    CHECK(text.find('\n') == std::string::npos);
  }
}

TEST_CASE("B49 pooling refuses a padding as large as its kernel") {
  CHECK(has(layer_problems("{ max_pool = 2, padding = 2 }"), "'padding' 2 >= kernel 2"));
  CHECK(has(layer_problems("{ avg_pool = [3, 2], padding = [1, 2] }"), "'padding' 1x2 >= kernel"));
  CHECK(layer_problems("{ max_pool = 3, padding = 2, stride = 1 }") == "");
}

TEST_CASE("B20 unknown keys and kinds of layers get the nearest right one") {
  CHECK(has(layer_problems("{ conv = 8, kernl = 3 }"), "did you mean 'kernel'?"));
  CHECK(has(layer_problems("{ conv = 8, kernl = 3 }"), "[model.layers, conv1]"));
  CHECK(has(layer_problems("{ cnov = 8, kernel = 3 }"), "'cnov': did you mean 'conv'?"));
  CHECK(has(layer_problems("{ kernel = 3 }"), "one of its keys must be 'conv', 'linear'"));
  CHECK(has(layer_problems("{ conv = 8, relu = true }"), "two kinds, 'conv' and 'relu'"));
  CHECK(has(layer_problems("{ relu = true, kernel = 3 }"), "unknown key 'kernel'"));
}

TEST_CASE("all problems of a model are listed at once, each with its place") {
  const std::string text = problems_of(
      "[model]\ninput = [3, 8]\nclasses = 0\nlayers = [\n  { conv = 0 },\n  { relu = 1 },\n"
      "  { dropout = 2 },\n]\n[loss]\nkind = \"hinge\"\ntop_k = [0]\n");
  for (const char* place : {":2:", ":3:", ":5:", ":6:", ":7:", ":9:", ":10:"}) {
    CAPTURE(place);
    CHECK(has(text, place));
  }
  CHECK(std::count(text.begin(), text.end(), '\n') == 6);
}

TEST_CASE("default names count each kind, named layers too") {
  const Graph graph = make_graph(
      "[model]\ninput = [4]\nlayers = [ { linear = 4 }, { linear = 4, name = \"mid\" }, "
      "{ dropout = 0.5 }, { linear = 4 } ]\n");
  CHECK(graph.nodes()[0].name == "linear1");
  CHECK(graph.nodes()[1].name == "mid");
  CHECK(graph.nodes()[2].name == "dropout1");
  CHECK(graph.nodes()[3].name == "linear3");
}

TEST_CASE("loss keys are read, and refused where they do not fit the loss") {
  const std::string model = "[model]\ninput = [4]\nlayers = [ { linear = 3 } ]\n[loss]\n";
  const Graph graph =
      make_graph(model + "label_smoothing = 0.1\nignore_index = 255\ntop_k = [2]\n");
  CHECK(graph.loss().label_smoothing == 0.1);
  CHECK(graph.loss().ignore_index == 255);
  CHECK(graph.loss().top_k == std::vector<std::int64_t>{2});
  CHECK(has(problems_of(model + "kind = \"mean_squared_error\"\nignore_index = 1\n"),
            "for cross_entropy, not mean_squared_error"));
  CHECK(has(problems_of(model + "ignore_index = 0.5\n"), "'ignore_index' must be integer"));
  CHECK(has(problems_of(model + "top_k = [1, 2, 3]\n"), "'top_k' must be one or two"));
  CHECK(has(problems_of(model + "label_smoothing = 1\n"), ">= 0 and < 1"));
}

}  // namespace annulus
