// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "core/value.h"

namespace annulus {

namespace {

template <class T>
std::string text_of(T data) {
  return to_string(Value{std::move(data), {}});
}

}  // namespace

TEST_CASE("values are shown as TOML on one line") {
  CHECK(text_of(true) == "true");
  CHECK(text_of(std::int64_t{-3}) == "-3");
  CHECK(text_of(32.5) == "32.5");
  CHECK(text_of(1.0) == "1.0");
  CHECK(text_of(1e22) == "1e+22");
  CHECK(text_of(0.1) == "0.1");
  CHECK(text_of(std::nan("")) == "nan");
  CHECK(text_of(-std::numeric_limits<double>::infinity()) == "-inf");
  CHECK(text_of(std::string("a\"b\\c\n\t\x01\x7f\u00e4")) ==
        "\"a\\\"b\\\\c\\n\\t\\u0001\\u007F\u00e4\"");
  CHECK(text_of(Value::Array{}) == "[]");
  CHECK(text_of(Value::Table{}) == "{}");
  Value table;
  table.set("a", {std::int64_t{1}, {}});
  table.set("b c", {Value::Array{{true, {}}, {2.5, {}}}, {}});
  CHECK(to_string(table) == "{ a = 1, \"b c\" = [true, 2.5] }");
}

TEST_CASE("keys are quoted where they must be") {
  CHECK(key_text("a-B_9") == "a-B_9");
  CHECK(key_text("a.b") == "\"a.b\"");
  CHECK(key_text("") == "\"\"");
  CHECK(key_text("\u00e4") == "\"\u00e4\"");
}

TEST_CASE("tables find, set and keep their order") {
  Value value;
  value.set("z", {std::int64_t{1}, {"f", 1, 1}});
  value.set("a", {std::int64_t{2}, {"f", 2, 1}});
  value.set("z", {std::int64_t{3}, {"f", 3, 1}});
  CHECK(to_string(value) == "{ z = 3, a = 2 }");
  CHECK(value.find("b") == nullptr);
  CHECK(value.find("z")->where.line == 3);
  CHECK(value.find("z")->find("x") == nullptr);
  Value outer;
  outer.set("in", value);
  CHECK(*outer.find_path("in.a")->get<std::int64_t>() == 2);
  CHECK(outer.find_path("in.b") == nullptr);
  CHECK(outer.find_path("in.a.b") == nullptr);
  CHECK(outer.find_path("no.a") == nullptr);
  CHECK(outer.find_path("") == &outer);
}

TEST_CASE("types have names for messages") {
  CHECK(type_name({true, {}}) == std::string("a boolean"));
  CHECK(type_name({std::int64_t{1}, {}}) == std::string("an integer"));
  CHECK(type_name({1.5, {}}) == std::string("a float"));
  CHECK(type_name({std::string(), {}}) == std::string("a string"));
  CHECK(type_name({Value::Array{}, {}}) == std::string("an array"));
  CHECK(type_name(Value{}) == std::string("a table"));
}

TEST_CASE("one problem is an error with its place, and none is none") {
  Problems problems;
  problems.throw_if_any();
  problems.warn({"f", 1, 2}, "look");
  problems.warn({"f", 1, 2}, "look");
  problems.warn({}, "no place");
  CHECK(problems.warnings() == std::vector<std::string>{"f:1:2: look", "no place"});
  CHECK(problems.empty());
  problems.add({"f", 3, 4}, "wrong");
  problems.add({"f", 3, 4}, "wrong");
  CHECK(problems.count() == 1);
  try {
    problems.throw_if_any();
    FAIL("a problem must throw");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) == "f:3:4: wrong");
    CHECK(error.where().line == 3);
    CHECK(error.kind() == ErrorKind::usage);
  }
  problems.add({}, "no place");
  CHECK_THROWS_WITH_AS(problems.throw_if_any(), "no place\nf:3:4: wrong", Error);
}

}  // namespace annulus
