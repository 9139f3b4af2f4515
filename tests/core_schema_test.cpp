// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <filesystem>
#include <limits>

#include <doctest/doctest.h>

#include "core/schema.h"

namespace annulus {

namespace {

struct Spec {
  std::int64_t global = 64;
  double lr = 0.1;
  double momentum = 0.9;
  double dropout = 0;
  bool shuffle = true;
  std::string device = "auto";
  std::string file;
  std::vector<std::int64_t> kernel = {3, 3};
  std::vector<double> mean;
  std::vector<std::string> files;
  bool has_schedule = false;
  std::int64_t steps = 0;
};

Schema describe(Spec& spec) {
  Schema schedule;
  schedule.key("steps", &spec.steps, "").at_least(0);
  Schema schema;
  schema.key("global", &spec.global, "samples of one update").at_least(1);
  schema.key("lr", &spec.lr, "").above(0).unusual_above(1e6);
  schema.key("momentum", &spec.momentum, "").at_least(0).below(1);
  schema.key("dropout", &spec.dropout, "").at_least(0).at_most(0.5);
  schema.key("shuffle", &spec.shuffle, "");
  schema.key("device", &spec.device, "").one_of({"auto", "cpu", "cuda"});
  schema.key("file", &spec.file, "").path();
  schema.key("kernel", &spec.kernel, "").at_least(1);
  schema.key("mean", &spec.mean, "");
  schema.key("files", &spec.files, "").path();
  schema.table("schedule", schedule, "").present(&spec.has_schedule);
  return schema;
}

Value value(decltype(Value::data) data, int line = 1, int column = 1) {
  return {std::move(data), {"dir/exp.toml", line, column}};
}
Value integer(std::int64_t number) {
  return value(number);
}

// Fills a Spec with one key; returns what is wrong.
std::string fill_one(Spec& spec, const std::string& key, const Value& item,
                     std::vector<std::string>* warnings = nullptr) {
  Value table;
  table.where = {"dir/exp.toml", 1, 1};
  table.set(key, item);
  Problems problems;
  describe(spec).fill(table, "batch", problems);
  if (warnings != nullptr) *warnings = problems.warnings();
  try {
    problems.throw_if_any();
  } catch (const Error& error) {
    CHECK(error.exit_code() == 2);
    return error.what();
  }
  return "";
}

std::string problem(const std::string& key, const Value& item) {
  Spec spec;
  return fill_one(spec, key, item);
}

}  // namespace

TEST_CASE("a schema fills its targets and keeps the defaults of the rest") {
  Spec spec;
  Value table;
  table.set("global", integer(32));
  table.set("lr", integer(1));
  table.set("shuffle", value(false));
  table.set("device", value(std::string("cpu")));
  table.set("kernel", value(Value::Array{integer(5), integer(7)}));
  table.set("mean", value(Value::Array{integer(1), value(0.25)}));
  Value schedule;
  schedule.set("steps", integer(3000000000));
  table.set("schedule", schedule);
  Problems problems;
  describe(spec).fill(table, "", problems);
  CHECK(problems.empty());
  CHECK(spec.global == 32);
  CHECK(spec.lr == 1.0);
  CHECK(spec.momentum == 0.9);
  CHECK_FALSE(spec.shuffle);
  CHECK(spec.device == "cpu");
  CHECK(spec.kernel == std::vector<std::int64_t>{5, 7});
  CHECK(spec.mean == std::vector<double>{1.0, 0.25});
  CHECK(spec.has_schedule);
  CHECK(spec.steps == 3000000000);
}

TEST_CASE("B58 wrong types and values out of range are errors with place, value and range") {
  const std::string lead = "dir/exp.toml:1:1: ";
  for (const auto& [item, shown] :
       std::vector<std::pair<Value, std::string>>{{integer(0), "0"},
                                                  {integer(-5), "-5"},
                                                  {value(32.5), "32.5"},
                                                  {value(true), "true"},
                                                  {value(std::string("32")), "\"32\""}}) {
    CHECK(problem("global", item) ==
          fmt::format("{}'global' must be integer >= 1, not {}", lead, shown));
  }
  const double inf = std::numeric_limits<double>::infinity();
  for (const auto& [item, shown] :
       std::vector<std::pair<Value, std::string>>{{integer(0), "0"},
                                                  {value(-0.1), "-0.1"},
                                                  {value(std::nan("")), "nan"},
                                                  {value(inf), "inf"},
                                                  {value(std::string("1e-4")), "\"1e-4\""},
                                                  {value(true), "true"}}) {
    CHECK(problem("lr", item) == fmt::format("{}'lr' must be number > 0, not {}", lead, shown));
  }
  CHECK(problem("momentum", integer(1)) == lead + "'momentum' must be number >= 0 and < 1, not 1");
  CHECK(problem("dropout", value(1.0)) ==
        lead + "'dropout' must be number >= 0 and <= 0.5, not 1.0");
  CHECK(problem("shuffle", integer(1)) == lead + "'shuffle' must be true or false, not 1");
  CHECK(problem("device", value(std::string("gpu"))) ==
        lead + "'device' must be \"auto\", \"cpu\" or \"cuda\", not \"gpu\"");
  CHECK(problem("device", integer(3)).find("not 3") != std::string::npos);
  CHECK(problem("file", integer(3)) == lead + "'file' must be path, not 3");
  CHECK(problem("kernel", value(Value::Array{integer(3), integer(0)})) ==
        lead + "'kernel' must be list of integers >= 1, not [3, 0]");
  CHECK(problem("kernel", integer(3)).find("must be list of integers >= 1, not 3") !=
        std::string::npos);
  CHECK(problem("mean", value(Value::Array{value(std::string("x"))})).find("list of numbers") !=
        std::string::npos);
  CHECK(problem("schedule", integer(3)) == lead + "'batch.schedule' must be a table, not 3");

  Spec spec;
  CHECK(fill_one(spec, "lr", integer(1)).empty());
  CHECK(spec.lr == 1.0);
  std::vector<std::string> warnings;
  CHECK(fill_one(spec, "lr", value(4e7), &warnings).empty());
  CHECK(spec.lr == 4e7);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0] == "dir/exp.toml:1:1: 'lr' = 40000000.0 is unusually large");
}

TEST_CASE("a value that is refused leaves its target alone") {
  Spec spec;
  fill_one(spec, "global", integer(-1));
  fill_one(spec, "kernel", value(Value::Array{integer(5), integer(-1)}));
  fill_one(spec, "device", value(std::string("gpu")));
  CHECK(spec.global == 64);
  CHECK(spec.kernel == std::vector<std::int64_t>{3, 3});
  CHECK(spec.device == "auto");
}

TEST_CASE("B20 unknown keys name the nearest known one, or the table that they belong to") {
  const std::string lead = "dir/exp.toml:1:1: unknown key ";
  CHECK(problem("momentun", integer(1)) ==
        lead + "'momentun' in [batch]; did you mean 'momentum'?");
  CHECK(problem("globl", integer(1)) == lead + "'globl' in [batch]; did you mean 'global'?");
  CHECK(problem("batch-global", integer(1)) ==
        lead + "'batch-global' in [batch]; did you mean 'global'?");
  CHECK(problem("steps", integer(1)) ==
        lead + "'steps' in [batch]; did you mean 'schedule.steps'?");
  CHECK(problem("zzz", integer(1)) == lead + "'zzz' in [batch]");
  CHECK(problem("xy", integer(1)) == lead + "'xy' in [batch]");
}

TEST_CASE("the nearest word is near") {
  CHECK(nearest("learning_rat", {"lr", "learning_rate"}) == "learning_rate");
  CHECK(nearest("optimiser", {"optimizer", "data"}) == "optimizer");
  CHECK(nearest("num-epochs", {"steps", "epochs"}) == "epochs");
  CHECK(nearest("lrr", {"lr"}) == "lr");
  CHECK(nearest("ab", {"lr", "mu"}).empty());
  CHECK(nearest("", {"lr"}).empty());
  CHECK(nearest("x", {}).empty());
}

TEST_CASE("all problems come at once, in the order of the file") {
  Spec spec;
  Value table;
  table.where = {"dir/exp.toml", 1, 1};
  table.set("lr", value(std::string("x"), 7, 6));
  table.set("globl", value(true, 3, 9));
  table.set("momentum", value(2.0, 3, 1));
  Schema schema = describe(spec);
  schema.key("name", &spec.device, "").required();
  Problems problems;
  schema.fill(table, "", problems);
  schema.fill(table, "", problems);  // the same again counts once
  CHECK(problems.count() == 4);
  try {
    problems.throw_if_any();
    FAIL("no problem was found");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) ==
          "dir/exp.toml:1:1: missing key 'name' at the top level\n"
          "dir/exp.toml:3:1: 'momentum' must be number >= 0 and < 1, not 2.0\n"
          "dir/exp.toml:3:9: unknown key 'globl' at the top level; did you mean 'global'?\n"
          "dir/exp.toml:7:6: 'lr' must be number > 0, not \"x\"");
  }
}

TEST_CASE("paths are relative to their file, or to the working directory") {
  namespace fs = std::filesystem;
  Spec spec;
  Value table;
  table.set("file", value(std::string("../data/a b.h5")));
  table.set("files", value(Value::Array{value(std::string("x.h5")), value(std::string("/y.h5"))}));
  Problems problems;
  const Schema schema = describe(spec);
  schema.fill(table, "", problems);
  CHECK(problems.empty());
  const fs::path here = fs::current_path();
  CHECK(spec.file == (here / "data/a b.h5").string());
  CHECK(spec.files == std::vector<std::string>{(here / "dir/x.h5").string(), "/y.h5"});
  schema.resolve_paths(table);
  CHECK(*table.find("file")->get<std::string>() == spec.file);
  CHECK(*(*table.find("files")->get<Value::Array>())[0].get<std::string>() == spec.files[0]);

  table.set("file", {std::string("x/a.h5"), {"--set data/file=x/a.h5", 0, 0}});
  schema.fill(table, "", problems);
  CHECK(spec.file == (here / "x/a.h5").string());
  table.set("file", {std::string(), {}});
  const std::size_t before = problems.count();
  schema.fill(table, "", problems);  // what a script's empty variable leaves
  CHECK(problems.count() == before + 1);
}

TEST_CASE("a key of its own form reads itself") {
  std::string seen;
  Schema schema;
  schema
      .key(
          "padding", "integer or \"same\"",
          [&](const Value& item, Problems& problems) {
            seen = to_string(item);
            if (item.get<bool>() != nullptr) problems.add(item.where, "not so");
          },
          "")
      .required();
  Value table;
  table.set("padding", value(true, 2, 3));
  Problems problems;
  schema.fill(table, "", problems);
  CHECK(seen == "true");
  CHECK(problems.count() == 1);
  CHECK(schema.keys()[0].type() == "integer or \"same\"");
  CHECK(schema.keys()[0].is_required());
}

TEST_CASE("a schema describes itself for the reference") {
  Spec spec;
  const Schema schema = describe(spec);
  std::string text;
  for (const Key& key : schema.keys()) {
    text += key.name() + ": " + key.type() + ": " + key.default_text() + "\n";
  }
  CHECK(text ==
        "global: integer >= 1: 64\nlr: number > 0: 0.1\nmomentum: number >= 0 and < 1: 0.9\n"
        "dropout: number >= 0 and <= 0.5: 0.0\nshuffle: true or false: true\n"
        "device: \"auto\", \"cpu\" or \"cuda\": \"auto\"\nfile: path: \n"
        "kernel: list of integers >= 1: [3, 3]\nmean: list of numbers: \nfiles: list of paths: \n"
        "schedule: table: \n");
  CHECK(schema.keys()[0].doc() == "samples of one update");
  CHECK(schema.keys().back().table() != nullptr);
}

}  // namespace annulus
