// SPDX-License-Identifier: Apache-2.0
#include <map>

#include <doctest/doctest.h>

#include "config/config.h"

namespace annulus {

namespace {

// ResNet-50 (v1.5: the stride sits in the 3x3 convolution) as a user writes it.
constexpr const char* resnet50 = R"(
[model]
input = [3, 224, 224]
classes = 1000
layers = [
  { conv = 64, kernel = 7, stride = 2, padding = 3, bias = false },
  { batch_norm = true, relu = true },
  { max_pool = 3, stride = 2, padding = 1 },
  { block = "bottleneck", name = "stage1", width = 64, repeat = 3, first = { project = true } },
  { block = "bottleneck", name = "stage2", width = 128, repeat = 4, first = { project = true, stride = 2 } },
  { block = "bottleneck", name = "stage3", width = 256, repeat = 6, first = { project = true, stride = 2 } },
  { block = "bottleneck", name = "stage4", width = 512, repeat = 3, first = { project = true, stride = 2 } },
  { global_average_pool = true },
  { linear = 1000 },
]
[model.blocks.bottleneck]
required = ["width"]
parameters = { stride = 1, project = false }
layers = [
  { conv = "4 * $width", kernel = 1, stride = "$stride", bias = false, when = "$project", name = "project" },
  { batch_norm = true, when = "$project", name = "shortcut" },
  { conv = "$width", kernel = 1, bias = false, from = "input" },
  { batch_norm = true, relu = true },
  { conv = "$width", kernel = 3, stride = "$stride", padding = 1, bias = false },
  { batch_norm = true, relu = true },
  { conv = "4 * $width", kernel = 1, bias = false },
  { batch_norm = true, add = "shortcut", relu = true, init = 0 },
]
)";

Value expanded(const std::string& text) {
  Value config = parse_config(text, "m.toml");
  Problems problems;
  expand_blocks(config, problems);
  problems.throw_if_any();
  CHECK(config.find_path("model.blocks") == nullptr);
  return config;
}

std::string problems_of(const std::string& text) {
  Value config = parse_config(text, "m.toml");
  Problems problems;
  expand_blocks(config, problems);
  try {
    problems.throw_if_any();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    return error.what();
  }
  return "";
}

const Value::Array& layers_of(const Value& config) {
  return *config.find_path("model.layers")->get<Value::Array>();
}

// The layers as lines of TOML.
std::string lines(const std::string& text) {
  std::string result;
  const Value config = expanded(text);
  for (const Value& layer : layers_of(config)) result += to_string(layer) + "\n";
  return result;
}

// A block "b" with the given layers, used once with the given use.
std::string one_block(const std::string& use, const std::string& block) {
  return "[model]\nlayers = [ { conv = 8 },\n" + use + "\n]\n[model.blocks.b]\n" + block + "\n";
}

std::string value_of(const std::string& expression, const std::string& parameters = "") {
  const Value config =
      expanded(one_block("{ block = \"b\" }",
                         "parameters = { a = 7, b = 2, f = 0.5, yes = true, "
                         "pad = \"same\", list = [3, 5]" +
                             parameters + " }\nlayers = [ { x = \"" + expression + "\" } ]"));
  return to_string(*layers_of(config)[1].find("x"));
}

std::string value_problem(const std::string& expression) {
  return problems_of(one_block("{ block = \"b\" }",
                               "parameters = { a = 7, z = 0, pad = \"same\", width = 1 }\n"
                               "layers = [ { x = \"" +
                                   expression + "\" } ]"));
}

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a page of blocks gives the layers of ResNet-50") {
  const Value config = expanded(resnet50);
  const auto& layers = layers_of(config);
  std::map<std::string, int> kinds;
  std::map<std::string, const Value*> by_name;
  std::int64_t channels_of_3x3 = 0;
  for (const Value& layer : layers) {
    ++kinds[layer.get<Value::Table>()->front().key];
    CHECK(by_name.emplace(*layer.find("name")->get<std::string>(), &layer).second);
    if (layer.find("kernel") != nullptr && *layer.find("kernel")->get<std::int64_t>() == 3) {
      channels_of_3x3 += *layer.find("conv")->get<std::int64_t>();
    }
  }
  CHECK(kinds == std::map<std::string, int>{{"conv", 53},
                                            {"batch_norm", 53},
                                            {"max_pool", 1},
                                            {"global_average_pool", 1},
                                            {"linear", 1}});
  CHECK(channels_of_3x3 == 3 * 64 + 4 * 128 + 6 * 256 + 3 * 512);

  const auto text = [&](const std::string& name) { return to_string(*by_name.at(name)); };
  CHECK(text("stage2.0.project") ==
        "{ conv = 512, kernel = 1, stride = 2, bias = false, name = \"stage2.0.project\" }");
  CHECK(text("stage2.0.conv2") ==
        "{ conv = 128, kernel = 1, bias = false, from = \"stage1.2.batch_norm4\", "
        "name = \"stage2.0.conv2\" }");
  CHECK(text("stage2.0.batch_norm4") ==
        "{ batch_norm = true, add = \"stage2.0.shortcut\", relu = true, init = 0, "
        "name = \"stage2.0.batch_norm4\" }");
  // Without a projection the shortcut is the block's input.
  CHECK(text("stage2.1.batch_norm4") ==
        "{ batch_norm = true, add = \"stage2.0.batch_norm4\", relu = true, init = 0, "
        "name = \"stage2.1.batch_norm4\" }");
  CHECK(text("stage1.0.conv2") ==
        "{ conv = 64, kernel = 1, bias = false, from = \"max_pool1\", name = \"stage1.0.conv2\" }");
  CHECK(text("conv1") ==
        "{ conv = 64, kernel = 7, stride = 2, padding = 3, bias = false, name = \"conv1\" }");
  CHECK(text("linear1") == "{ linear = 1000, name = \"linear1\" }");
  CHECK(by_name.at("stage4.2.conv4") != nullptr);
  CHECK(to_string(by_name.at("stage4.2.conv4")->find("conv")->where) == "m.toml:26:12");
}

TEST_CASE("a model without blocks keeps its form") {
  CHECK(lines("[model]\nlayers = [ { conv = 8 }, { relu = true, from = \"conv1\" } ]") ==
        "{ conv = 8 }\n{ relu = true, from = \"conv1\" }\n");
}

TEST_CASE("a layer that is left out is the identity") {
  // In the middle of the chain, at its end, with a name that others use, with a `from` of its own.
  CHECK(lines("[model]\nlayers = [ { conv = 1, name = \"a\" }, { conv = 2, name = \"b\" },\n"
              "{ conv = 3, when = false, name = \"c\", from = \"a\" },\n"
              "{ relu = true },\n"
              "{ batch_norm = true, add = \"c\" } ]") ==
        "{ conv = 1, name = \"a\" }\n{ conv = 2, name = \"b\" }\n"
        "{ relu = true, name = \"relu1\", from = \"a\" }\n"
        "{ batch_norm = true, add = \"a\", name = \"batch_norm1\" }\n");
  // Its number is taken, so that names do not depend on parameters; the rest of it is not read.
  CHECK(lines(one_block("{ block = \"b\" }",
                        "parameters = { p = 0 }\nlayers = [ { conv = \"1 / $p\", when = \"$p > 0\" "
                        "}, { conv = 2 } ]")) ==
        "{ conv = 8, name = \"conv1\" }\n{ conv = 2, name = \"b1.conv2\" }\n");
  // All of a block left out: its name is its input.
  CHECK(lines(one_block("{ block = \"b\", name = \"n\", repeat = 2 }, { relu = true, from = \"n\" "
                        "}, { block = \"b\", when = false, name = \"o\" }, { add = \"o\" }",
                        "layers = [ { conv = 2, when = false } ]")) ==
        "{ conv = 8, name = \"conv1\" }\n{ relu = true, from = \"conv1\", name = \"relu1\" }\n"
        "{ add = \"relu1\", name = \"add1\" }\n");
}

TEST_CASE("blocks nest, and names mean what stands nearest") {
  CHECK(lines(R"(
[model]
layers = [
  { conv = 1, name = "stem" },
  { block = "outer", repeat = 2 },
  { relu = true, add = "outer1", from = "outer1.0.inner1.leaf" },
]
[model.blocks.outer]
layers = [
  { conv = 2, name = "leaf" },
  { block = "inner", size = 3 },
  { conv = 4, from = "input", add = ["leaf", "inner1", "inner1.leaf", "stem"], share = "leaf" },
]
[model.blocks.inner]
required = ["size"]
parameters = { half = "$size * 2" }
layers = [ { conv = "$half", name = "leaf", add = "input" }, { tanh = true, from = "leaf" } ]
)") == R"({ conv = 1, name = "stem" }
{ conv = 2, name = "outer1.0.leaf" }
{ conv = 6, name = "outer1.0.inner1.leaf", add = "outer1.0.leaf" }
{ tanh = true, from = "outer1.0.inner1.leaf", name = "outer1.0.inner1.tanh1" }
{ conv = 4, from = "stem", add = ["outer1.0.leaf", "outer1.0.inner1.tanh1", "outer1.0.inner1.leaf", "stem"], share = "outer1.0.leaf", name = "outer1.0.conv2" }
{ conv = 2, name = "outer1.1.leaf" }
{ conv = 6, name = "outer1.1.inner1.leaf", add = "outer1.1.leaf" }
{ tanh = true, from = "outer1.1.inner1.leaf", name = "outer1.1.inner1.tanh1" }
{ conv = 4, from = "outer1.0.conv2", add = ["outer1.1.leaf", "outer1.1.inner1.tanh1", "outer1.1.inner1.leaf", "stem"], share = "outer1.1.leaf", name = "outer1.1.conv2" }
{ relu = true, add = "outer1.1.conv2", from = "outer1.0.inner1.leaf", name = "relu1" }
)");
}

TEST_CASE("a block reads the layer that its from names") {
  CHECK(
      lines("[model]\ninput = { left = [3], right = [3] }\nlayers = [ { linear = 1, name = \"a\", "
            "from = \"right\" }, { linear = 2 }, { block = \"b\", from = [\"a\"] }, { block = "
            "\"b\", from = \"left\" } ]\n[model.blocks.b]\nlayers = [ { relu = true } ]") ==
      "{ linear = 1, name = \"a\", from = \"right\" }\n{ linear = 2, name = \"linear2\" }\n"
      "{ relu = true, name = \"b1.relu1\", from = \"a\" }\n"
      "{ relu = true, name = \"b2.relu1\", from = \"left\" }\n");
  // At the start of the model the input is the model's own.
  CHECK(lines("[model]\nlayers = [ { block = \"b\" } ]\n[model.blocks.b]\nlayers = [ { relu = true "
              "}, { add = \"input\" } ]") ==
        "{ relu = true, name = \"b1.relu1\" }\n{ add = \"input\", name = \"b1.add1\" }\n");
}

TEST_CASE("running numbers do not depend on names") {
  CHECK(lines(one_block("{ block = \"b\", name = \"n\" }, { block = \"b\" }",
                        "layers = [ { conv = 1, name = \"x\" }, { conv = 2 } ]")) ==
        "{ conv = 8, name = \"conv1\" }\n{ conv = 1, name = \"n.x\" }\n"
        "{ conv = 2, name = \"n.conv2\" }\n{ conv = 1, name = \"b2.x\" }\n"
        "{ conv = 2, name = \"b2.conv2\" }\n");
  CHECK(problems_of(one_block("{ block = \"b\" }",
                              "layers = [ { conv = 1 }, { relu = true, name = \"conv1\" } ]")) ==
        "m.toml:6:48: two layers are named 'conv1' here");
}

TEST_CASE("a list of layers to join is all that a layer reads") {
  CHECK(lines("[model]\nlayers = [ { conv = 1 }, { conv = 2 }, { relu = true, from = \"conv1\", "
              "when = false }, { add = [\"conv1\", \"conv2\"] } ]") ==
        "{ conv = 1, name = \"conv1\" }\n{ conv = 2, name = \"conv2\" }\n"
        "{ add = [\"conv1\", \"conv2\"], name = \"add1\" }\n");
}

TEST_CASE("expressions over parameters") {
  CHECK(value_of("$a") == "7");
  CHECK(value_of("$pad") == "\"same\"");
  CHECK(value_of("$list") == "[3, 5]");
  CHECK(value_of("$yes") == "true");
  CHECK(value_of("2 + 3 * $a") == "23");
  CHECK(value_of("(2 + 3) * $a") == "35");
  CHECK(value_of("$a - 3 - 1") == "3");
  CHECK(value_of("-$a + 1") == "-6");
  CHECK(value_of("--$a") == "7");
  CHECK(value_of("$a % 4") == "3");
  CHECK(value_of("8 / $b") == "4");
  CHECK(value_of("$a / 2.0") == "3.5");
  CHECK(value_of("$f * 2") == "1.0");
  CHECK(value_of("1e-3 * $b") == "0.002");
  CHECK(value_of("$a == 7") == "true");
  CHECK(value_of("$a != 7.0") == "false");
  CHECK(value_of("$a <= 7 and $a >= 7 and not ($a < 7 or $a > 7)") == "true");
  CHECK(value_of("$pad == 'same'") == "true");
  CHECK(value_of("$pad != 'same' or $yes") == "true");
  CHECK(value_of("$yes == false") == "false");
  CHECK(value_of("false or true and $yes") == "true");
  // What is not needed is not computed.
  CHECK(value_of("$b == 2 or $a / 0 > 1 or not $a") == "true");
  CHECK(value_of("$b != 2 and $a / 0 == 1") == "false");
  CHECK(value_of("$b == 2 or $pad + 1 == 2") == "true");
  // No parameter, no expression.
  CHECK(value_of("1 + 1") == "\"1 + 1\"");
  CHECK(value_of("5$") == "\"5$\"");
}

TEST_CASE("an expression that has no value says why") {
  CHECK(value_problem("$widht") ==
        "m.toml:7:18: in \"$widht\": there is no parameter 'widht'; did you mean 'width'?");
  CHECK(has(value_problem("$a / 2"), "7 / 2 is not an integer; 7 / 2.0 would be a float"));
  CHECK(has(value_problem("$a / $z"), "division by zero"));
  CHECK(has(value_problem("$a / 0.0"), "division by zero"));
  CHECK(has(value_problem("$a % 0"), "division by zero"));
  CHECK(has(value_problem("$a % 2.0"), "'%' is for integers"));
  CHECK(has(value_problem("$a + $pad"), "\"same\" is not a number"));
  CHECK(has(value_problem("$a and true"), "7 is not true or false"));
  CHECK(has(value_problem("not $a"), "7 is not true or false"));
  CHECK(has(value_problem("$a < 'x'"), "\"x\" is not a number"));
  CHECK(has(value_problem("$a +"), "the end comes too early"));
  CHECK(has(value_problem("($a"), "a ')' is missing"));
  CHECK(has(value_problem("$pad == 'x"), "a ' is missing"));
  CHECK(has(value_problem("$a 3"), "'3' is not expected"));
  CHECK(has(value_problem("conv_$a"), "'conv_$a' is not expected"));
  CHECK(has(value_problem("$a * 9223372036854775807"), "integer out of range"));
  CHECK(has(value_problem("$a * 9223372036854775808"), "integer out of range"));
  CHECK(has(value_problem("(-9223372036854775807 - 1) / (0 - 1) + $a"), "integer out of range"));
  CHECK(has(value_problem(std::string(1000, '(') + "$a"), "nested too deeply"));
  CHECK(has(value_problem(std::string(1000, '-') + "$a"), "nested too deeply"));
}

TEST_CASE("mistakes in uses of blocks are all named, at the use") {
  const std::string text = problems_of(R"([model]
layers = [
  { block = "bottlenek", width = 1 },
  { block = "bottleneck", widht = 1 },
  { block = "bottleneck", width = 1, repeat = 0 },
  { block = "bottleneck", width = 1, repeat = 1.5 },
  { block = "bottleneck", width = 1, first = 3 },
  { block = "bottleneck", width = 1, first = { strid = 3 } },
  { block = "bottleneck", width = 1, from = ["a", "b"] },
  { block = 3 },
  { block = "bottleneck", width = 1, when = 3 },
  { block = "bottleneck", width = "$x" },
  { block = "bottleneck", width = 1, name = 3 }, { block = "bottleneck" },
  { block = "bottleneck", width = 1, name = "n" }, { block = "bottleneck", width = 1, name = "n" },
  3,
  { relu = true, when = false, from = ["a", "b"] },
]
[model.blocks.bottleneck]
required = ["width"]
parameters = { stride = 1 }
layers = [ { conv = "$width" } ]
)");
  const auto line = [&](const std::string& part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  line("m.toml:3:13: there is no block 'bottlenek' in [model.blocks]; did you mean 'bottleneck'?");
  line("m.toml:4:27: block 'bottleneck' has no parameter 'widht'; did you mean 'width'?");
  line("m.toml:5:47: 'repeat' must be integer >= 1 and <= 100000, not 0");
  line("m.toml:6:47: 'repeat' must be integer >= 1 and <= 100000, not 1.5");
  line("m.toml:7:46: 'first' must be a table of parameters, not 3");
  line("m.toml:8:48: block 'bottleneck' has no parameter 'strid'; did you mean 'stride'?");
  line("m.toml:9:45: a block has one input: 'from' must be one name, not [\"a\", \"b\"]");
  line("m.toml:10:13: 'block' must be the name of a block, not 3");
  line("m.toml:11:45: 'when' must be true or false, not 3");
  line("m.toml:12:35: \"$x\" stands outside of a block: only blocks have parameters");
  line("m.toml:13:45: 'name' must be a text, not 3");
  line("m.toml:13:50: block 'bottleneck' needs the parameter 'width'");
  line("m.toml:14:94: two layers are named 'n' here");
  line("m.toml:15:3: a layer must be a table, not 3");
  line("m.toml:16:39: a layer that is left out has one input: 'from' must be one name");
}

TEST_CASE("mistakes in blocks are all named, once, at the block") {
  const std::string text = problems_of(R"([model]
layers = [ { block = "a", repeat = 3 }, { block = "a" }, { block = "c" } ]
[model.blocks.a]
layer = 3
parameters = { name = 3, "x-y" = 1, p = 1, q = "$r" }
required = ["p", "z", 3]
layers = [ { conv = "$pp" }, { relu = true, name = "input" }, { relu = true, name = "s" }, { relu = true, name = "s" } ]
[model.blocks.c]
layers = [ { block = "d" } ]
[model.blocks.d]
layers = [ { block = "c" } ]
[model.blocks.e]
layers = []
[model.blocks.f]
parameters = 1
required = 1
[model.blocks]
g = 1
)");
  const auto line = [&](const std::string& part) {
    INFO(text);
    const std::size_t at = text.find(part);
    CHECK(at != std::string::npos);
    CHECK(text.find(part, at + 1) == std::string::npos);
  };
  line("m.toml:4:1: unknown key 'layer' in [model.blocks.a]; did you mean 'layers'?");
  line("m.toml:5:16: 'name' has a meaning of its own where a block is used");
  line("m.toml:5:26: the name of a parameter is letters, digits and '_', not 'x-y'");
  line("m.toml:6:13: block 'a' has the parameter 'p' twice");
  line("m.toml:6:23: 'required' must be list of strings");
  line("m.toml:11:22: block 'c' contains itself: c -> d -> c");
  line("m.toml:13:10: 'layers' of block 'e' must be a list of layers, not []");
  line("m.toml:14:15: block 'f' has no 'layers'");
  line("m.toml:15:14: 'parameters' must be a table of names and defaults, not 1");
  line("m.toml:16:12: 'required' must be list of strings, not 1");
  line("m.toml:18:5: block 'g' must be a table, not 1");
}

TEST_CASE("mistakes in the layers of a block are named once for all its uses") {
  CHECK(
      problems_of(one_block("{ block = \"b\", repeat = 3 }, { block = \"b\" }",
                            "parameters = { p = 1 }\nlayers = [ { conv = \"$q\" }, { relu = true, "
                            "name = \"input\" }, { tanh = 1, name = \"s\" }, { tanh = 1, name = "
                            "\"s\" } ]")) ==
      "m.toml:7:21: in \"$q\": there is no parameter 'q'\n"
      "m.toml:7:51: in a block 'input' is the block's input; a layer needs another name\n"
      "m.toml:7:107: two layers are named 's' here");
}

TEST_CASE("a block that nobody uses is a warning, and too many layers are an error") {
  Value config =
      parse_config("[model]\nlayers = [ ]\n[model.blocks.b]\nlayers = [ { a = 1 } ]", "m.toml");
  Problems problems;
  expand_blocks(config, problems);
  CHECK(problems.empty());
  REQUIRE(problems.warnings().size() == 1);
  CHECK(problems.warnings()[0] == "m.toml:3:15: block 'b' is not used");

  std::string text = "[model]\nlayers = [ { block = \"b0\" } ]\n";
  for (int i = 0; i < 40; ++i) {
    text += fmt::format(
        "[model.blocks.b{}]\nlayers = [ {{ block = \"b{}\" }}, {{ block = \"b{}\" }} ]\n", i, i + 1,
        i + 1);
  }
  text += "[model.blocks.b40]\nlayers = [ { relu = true, when = false } ]";
  CHECK(has(problems_of(text), "the blocks give more than 100000 layers"));
}

TEST_CASE("a config without a model, or with one of a wrong type, is left to the schema") {
  for (const char* text : {"", "model = 3", "[model]", "[model]\nlayers = 3"}) {
    CHECK(problems_of(text).empty());
  }
  CHECK(has(problems_of("[model]\nblocks = 3\nlayers = [ { relu = 1 } ]"),
            "'model.blocks' must be a table, not 3"));
}

}  // namespace annulus
