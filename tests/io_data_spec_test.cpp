// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.h"
#include "io/data_spec.h"

using namespace annulus;

namespace {

Value at(auto data, int line) {
  return Value{data, Location{"/configs/a.toml", line, 1}};
}

Value table(std::vector<std::pair<std::string, Value>> members) {
  Value value = at(Value::Table{}, 1);
  for (auto& [key, member] : members) value.set(key, member);
  return value;
}

Value text(const char* word) {
  return at(std::string(word), 2);
}

std::string problems_of(const Value& value) {
  DataSpec spec;
  Problems problems;
  describe(spec).fill(value, "data.train", problems);
  try {
    problems.throw_if_any();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

Value with(std::string key, Value value) {
  return table({{"file", text("d.h5")}, {"inputs", text("x")}, {std::move(key), value}});
}

}  // namespace

TEST_CASE("a data table fills its spec") {
  DataOptions options;
  Problems problems;
  const Value train = table(
      {{"file", text("../d.h5")},
       {"inputs", text("train/images")},
       {"labels", text("train/labels")},
       {"layout", text("NHWC")},
       {"scale", at(0.0625, 3)},
       {"mean", at(Value::Array{at(std::int64_t{1}, 3), at(0.5, 3)}, 3)},
       {"workers", at(std::int64_t{0}, 3)},
       {"augment", table({{"crop_padding", at(std::int64_t{4}, 4)}, {"flip", at(true, 4)}})}});
  describe(options).fill(table({{"train", train}, {"drop_last", at(true, 5)}}), "data", problems);
  problems.throw_if_any();
  CHECK(options.has_train);
  CHECK_FALSE(options.has_test);
  CHECK(options.drop_last);
  CHECK(options.train.file == "/d.h5");
  REQUIRE(options.train.inputs.size() == 1);
  CHECK(options.train.inputs[0].name.empty());
  CHECK(options.train.inputs[0].dataset == "train/images");
  CHECK(options.train.layout == "NHWC");
  CHECK(options.train.scale == 0.0625);
  CHECK(options.train.mean == std::vector<double>{1, 0.5});
  CHECK(options.train.workers == 0);
  CHECK(options.train.prefetch == 2);
  CHECK(options.train.augment.crop_padding == 4);
  CHECK(options.train.augment.flip);
}

TEST_CASE("inputs may be a table from names to data sets") {
  DataSpec spec;
  Problems problems;
  const Value inputs = table({{"left", text("a")}, {"right", text("b")}});
  describe(spec).fill(table({{"file", text("d.h5")}, {"inputs", inputs}}), "data.train", problems);
  problems.throw_if_any();
  REQUIRE(spec.inputs.size() == 2);
  CHECK(spec.inputs[1].name == "right");
  CHECK(spec.inputs[1].dataset == "b");
}

TEST_CASE("values of a data table that make no sense are named with their place") {
  CHECK(problems_of(with("std", at(Value::Array{at(0.0, 7)}, 7))) ==
        "/configs/a.toml:7:1: 'std' must be list of numbers > 0, not [0.0]");
  CHECK(problems_of(with("layout", text("HWC"))).find("\"NCHW\" or \"NHWC\"") != std::string::npos);
  CHECK(problems_of(with("workers", at(std::int64_t{257}, 2))).find("<= 256") != std::string::npos);
  CHECK(problems_of(with("prefetch", at(std::int64_t{1025}, 2))).find("<= 1024") !=
        std::string::npos);
  CHECK(problems_of(with("scale", at(1.0 / 0.0, 2))).find("'scale' must be number") !=
        std::string::npos);
  CHECK(
      problems_of(with("inputs", at(std::int64_t{3}, 2))).find("must be the path of a data set") !=
      std::string::npos);
  CHECK(problems_of(with("inputs", table({{"a", at(true, 2)}})))
            .find("'inputs.a' must be the path") != std::string::npos);
  CHECK(problems_of(with("lables", text("y"))).find("did you mean 'labels'") != std::string::npos);
  CHECK(problems_of(table({})).find("missing key 'file'") != std::string::npos);
  CHECK(problems_of(table({})).find("missing key 'inputs'") != std::string::npos);
}
