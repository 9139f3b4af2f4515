// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "config/config.h"
#include "config/utf8.h"

namespace annulus {

namespace {

std::string error_of(const std::string& text) {
  try {
    parse_config(text, "exp.toml");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    return error.what();
  }
  return "";
}

// Equality of values without their places and without the order of keys.
bool same(const Value& a, const Value& b) {
  const auto* left = a.get<Value::Table>();
  const auto* right = b.get<Value::Table>();
  if (left != nullptr && right != nullptr) {
    if (left->size() != right->size()) return false;
    for (const Member& member : *left) {
      const Value* other = b.find(member.key);
      if (other == nullptr || !same(member.value, *other)) return false;
    }
    return true;
  }
  const auto* x = a.get<Value::Array>();
  const auto* y = b.get<Value::Array>();
  if (x != nullptr && y != nullptr) {
    if (x->size() != y->size()) return false;
    for (std::size_t i = 0; i < x->size(); ++i) {
      if (!same((*x)[i], (*y)[i])) return false;
    }
    return true;
  }
  if (const auto* number = a.get<double>(); number != nullptr && b.get<double>() != nullptr) {
    const double other = *b.get<double>();
    if (std::isnan(*number)) return std::isnan(other);
    return *number == other && std::signbit(*number) == std::signbit(other);
  }
  return a.data.index() == b.data.index() && to_string(a) == to_string(b);
}

constexpr const char* sample =
    "name = \"digits\"\n[data.train]\nfile = \"da ta/\u00e4\u6570.h5\"\nlabel = \"\\u00e4\"\n"
    "[batch]\n\tglobal = 64";

}  // namespace

TEST_CASE("values and keys keep their places and their order") {
  const Value config = parse_config(
      "z = 1\nb.c = true\n\n[data.train]\n  scale = 0.5\n  sizes = [1,\n    2]\n[a]\nx = {y = 'q'}",
      "dir/exp.toml");
  const auto& members = *config.get<Value::Table>();
  REQUIRE(members.size() == 4);
  CHECK(to_string(config) ==
        "{ z = 1, b = { c = true }, data = { train = { scale = 0.5, sizes = [1, 2] } }, a = { x = "
        "{ y = \"q\" } } }");
  CHECK(to_string(members[0].where) == "dir/exp.toml:1:1");
  CHECK(to_string(members[0].value.where) == "dir/exp.toml:1:5");
  CHECK(to_string(config.find_path("b.c")->where) == "dir/exp.toml:2:7");
  CHECK(to_string(config.find_path("data.train.scale")->where) == "dir/exp.toml:5:11");
  const auto& sizes = *config.find_path("data.train.sizes")->get<Value::Array>();
  CHECK(to_string(sizes[1].where) == "dir/exp.toml:7:5");
  CHECK(config.find_path("data")->where.line == 4);
  CHECK(to_string(config.find_path("a.x.y")->where) == "dir/exp.toml:9:10");
}

TEST_CASE("a syntax error has its place") {
  CHECK(error_of("a = 1\nb = [1,\n").find("exp.toml:") == 0);
  CHECK(error_of("a = 1\nb = \n").substr(0, 11) == "exp.toml:2:");
  CHECK(error_of("a = 1\n\na = 2\n").substr(0, 11) == "exp.toml:3:");
  CHECK(error_of("a = 1\na = 2").find("redefine existing integer 'a'") != std::string::npos);
  CHECK(error_of("[t]\n[t]").find("redefine existing table 't'") != std::string::npos);
  CHECK(error_of("day = 1979-05-27") ==
        "exp.toml:1:7: no key takes a date or a time; put it in quotes");
  CHECK(error_of("x = [07:32:00]").find("exp.toml:1:6: no key takes a date") == 0);
  CHECK(error_of("x = 1e999").find("exp.toml:1:") == 0);
  CHECK(error_of("x = " + std::string(100000, '[')).find("exp.toml:1:") == 0);
}

TEST_CASE("B73 integers have 64 bits and keep their digits") {
  const Value config = parse_config(
      "a = 3000000000\nb = 9223372036854775807\nc = -9223372036854775808\nd = 2147483648\ne = 0xff",
      "exp.toml");
  CHECK(*config.find("a")->get<std::int64_t>() == 3000000000);
  CHECK(*config.find("b")->get<std::int64_t>() == std::numeric_limits<std::int64_t>::max());
  CHECK(*config.find("c")->get<std::int64_t>() == std::numeric_limits<std::int64_t>::min());
  CHECK(*config.find("d")->get<std::int64_t>() == 2147483648);
  CHECK(to_string(*config.find("a")) == "3000000000");
  for (const char* text : {"9223372036854775808", "-9223372036854775809", "0xffffffffffffffff",
                           "99999999999999999999999999"}) {
    const std::string message = error_of("seed = 1\n[train]\nsteps = " + std::string(text));
    INFO(message);
    CHECK(message.substr(0, 11) == "exp.toml:3:");
    CHECK(message.find("integer out of range: '") != std::string::npos);
  }
}

TEST_CASE("B86 line ends, byte order mark and a missing last line end make no difference") {
  const std::string lf = sample + std::string("\n");
  std::string crlf;
  for (char c : lf) crlf += c == '\n' ? "\r\n" : std::string(1, c);
  const Value expected = parse_config(lf, "exp.toml");
  for (const std::string& text : {std::string(sample), crlf, "\xEF\xBB\xBF" + crlf}) {
    const Value config = parse_config(text, "exp.toml");
    CHECK(same(config, expected));
    CHECK(to_toml(config) == to_toml(expected));
    CHECK(to_string(config.find_path("batch.global")->where) == "exp.toml:6:11");
    CHECK(to_string(config.get<Value::Table>()->front().where) == "exp.toml:1:1");
  }
  CHECK(*expected.find_path("data.train.label")->get<std::string>() == "\u00e4");
  CHECK(*expected.find_path("data.train.file")->get<std::string>() == "da ta/\u00e4\u6570.h5");
}

TEST_CASE("B86 what is not UTF-8 is refused with the byte") {
  CHECK(error_of(std::string("\xFF\xFE"
                             "a\0=\0001\0",
                             8)) == "exp.toml: not UTF-8 at byte 0");
  CHECK(error_of(std::string("a\0=\0001\0", 6)) == "exp.toml: not UTF-8 at byte 0");
  CHECK(error_of(std::string("\0a\0=\0001", 6)) == "exp.toml: not UTF-8 at byte 0");
  CHECK(error_of("a = \"\xE4\"") == "exp.toml: not UTF-8 at byte 5");
  CHECK(error_of("\xEF\xBB\xBFx = \"\x80\"") == "exp.toml: not UTF-8 at byte 8");
}

TEST_CASE("the check for UTF-8 knows the edges of the encoding") {
  using namespace std::string_view_literals;
  for (const std::string_view good :
       {""sv, "a"sv, "\x7F"sv, "\xC2\x80"sv, "\xDF\xBF"sv, "\xE0\xA0\x80"sv, "\xED\x9F\xBF"sv,
        "\xEE\x80\x80"sv, "\xEF\xBF\xBF"sv, "\xF0\x90\x80\x80"sv, "\xF4\x8F\xBF\xBF"sv}) {
    CHECK_FALSE(find_invalid_utf8(good).has_value());
  }
  for (const std::string_view bad :
       {"\x80"sv, "\xBF"sv, "\xC0\x80"sv, "\xC1\xBF"sv, "\xC2"sv, "\xC2\x41"sv, "\xE0\x9F\xBF"sv,
        "\xE0\xA0"sv, "\xED\xA0\x80"sv, "\xED\xBF\xBF"sv, "\xF0\x8F\xBF\xBF"sv,
        "\xF4\x90\x80\x80"sv, "\xF5\x80\x80\x80"sv, "\xFF"sv}) {
    CHECK(find_invalid_utf8("abc" + std::string(bad)) == std::size_t{3});
  }
}

TEST_CASE("what is written reads back as the same values") {
  const double inf = std::numeric_limits<double>::infinity();
  Value::Array numbers;
  for (double number : {0.1, -0.0, 1.0, 1e16, 1e22, 1e-5, 5e-324, 1.7976931348623157e308, 1.0 / 3,
                        inf, -inf, std::nan("")}) {
    numbers.push_back({number, {}});
  }
  Value config;
  config.set("numbers", {numbers, {}});
  config.set("smallest", {std::numeric_limits<std::int64_t>::min(), {}});
  config.set("flag", {false, {}});
  config.set("text", {std::string("\"q\" \\ \b\t\n\f\r\x01\x1f\x7f \u00e4\u6570 ''' \"\"\""), {}});
  config.set("empty", {std::string(), {}});
  config.set("nothing", {Value::Array{}, {}});
  Value inner;
  inner.set("a key.with \"quotes\"", {std::int64_t{1}, {}});
  inner.set("", {true, {}});
  inner.set("none", {Value::Table{}, {}});
  config.set("inner", inner);
  Value deep;
  deep.set("leaf", inner);
  config.set("only tables", deep);
  config.set("after", {2.5, {}});
  Value layer;
  layer.set("conv", {std::int64_t{16}, {}});
  layer.set("kernel", {Value::Array{{std::int64_t{3}, {}}, {std::int64_t{5}, {}}}, {}});
  layer.set("init", inner);
  config.set("layers", {Value::Array{layer, layer}, {}});
  config.set("nested", {Value::Array{{Value::Array{layer}, {}}, {Value::Array{}, {}}}, {}});

  const std::string text = to_toml(config);
  INFO(text);
  const Value back = parse_config(text, "exp.toml");
  CHECK(same(back, config));
  CHECK(to_toml(back) == text);
  CHECK(same(parse_config(to_toml(Value{}), "x"), Value{}));
}

TEST_CASE("written configs are for people") {
  const Value config = parse_config(
      "model.layers = [{conv=16,kernel=3},{relu=true}]\nname='x'\n[data.train]\nscale=1.0\n[data]\n"
      "[empty]",
      "exp.toml");
  CHECK(
      to_toml(config) ==
      "name = \"x\"\n\n[model]\nlayers = [\n  { conv = 16, kernel = 3 },\n  { relu = true },\n]\n\n"
      "[data.train]\nscale = 1.0\n\n[empty]\n");
}

}  // namespace annulus
