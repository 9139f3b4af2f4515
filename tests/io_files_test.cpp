// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.h"
#include "io/files.h"
#include "io/json.h"
#include "io/metrics_file.h"
#include "support/temp_dir.h"

using namespace annulus;
using namespace annulus::test;
namespace fs = std::filesystem;

TEST_CASE("a JSON object is one line with its members in order") {
  JsonObject test;
  test.set("loss", 0.25).set("top1", 1.0);
  JsonObject object;
  object.set("status", "done")
      .set("steps", 100)
      .set("large", std::int64_t{9007199254740993})
      .set("ok", true)
      .set("test", test)
      .set_null("nothing")
      .set("hosts", std::span<const std::string>(std::vector<std::string>{"h0", "h1"}))
      .set("counts", std::span<const std::int64_t>(std::vector<std::int64_t>{1, -2}))
      .set("times", std::span<const double>(std::vector<double>{0.1, 2}))
      .set("parts", std::span<const JsonObject>(std::vector<JsonObject>{test, JsonObject()}))
      .set("empty", std::span<const double>());
  CHECK(object.text() ==
        R"({"status":"done","steps":100,"large":9007199254740993,"ok":true,)"
        R"("test":{"loss":0.25,"top1":1},"nothing":null,"hosts":["h0","h1"],"counts":[1,-2],)"
        R"("times":[0.1,2],"parts":[{"loss":0.25,"top1":1},{}],"empty":[]})");
}

TEST_CASE("JSON floats are short and exact, and null where they are not finite") {
  const auto text = [](double value) { return JsonObject().set("v", value).text(); };
  CHECK(text(0.1) == R"({"v":0.1})");
  CHECK(text(1.0 / 3) == R"({"v":0.3333333333333333})");
  CHECK(text(5e-324) == R"({"v":5e-324})");
  CHECK(text(1e21) == R"({"v":1e+21})");
  CHECK(text(std::numeric_limits<double>::quiet_NaN()) == R"({"v":null})");
  CHECK(text(-std::numeric_limits<double>::infinity()) == R"({"v":null})");
}

TEST_CASE("JSON texts are escaped, and what is not UTF-8 is replaced") {
  CHECK(JsonObject().set("a\"b", "line\nquote\"back\\slash\x01").text() ==
        R"({"a\"b":"line\nquote\"back\\slash\u0001"})");
  CHECK(JsonObject().set("v", "\xff").text() == "{\"v\":\"\xEF\xBF\xBD\"}");
}

TEST_CASE("metrics are lines; a half line of a killed run is cut off") {
  const TempDir dir;
  const std::string path = dir / "metrics.jsonl";
  {
    MetricsFile metrics(path);
    metrics.append(JsonObject().set("update", 1));
    metrics.append(JsonObject().set("update", 2));
  }
  CHECK(read_file(path) == "{\"update\":1}\n{\"update\":2}\n");
  std::ofstream(path, std::ios::app) << "{\"upda";
  MetricsFile(path).append(JsonObject().set("update", 3));
  CHECK(read_file(path) == "{\"update\":1}\n{\"update\":2}\n{\"update\":3}\n");

  std::ofstream(path) << "no line at all";
  MetricsFile(path).append(JsonObject());
  CHECK(read_file(path) == "{}\n");
  CHECK_THROWS_WITH_AS(MetricsFile(dir / "none/metrics.jsonl"), doctest::Contains("cannot open"),
                       Error);
}

TEST_CASE("a file is written whole or not at all") {
  const TempDir dir;
  const std::string path = dir / "summary.json";
  write_file_atomically(path, "one");
  write_file_atomically(path, "two");
  CHECK(read_file(path) == "two");
  CHECK(dir.names() == std::vector<std::string>{"summary.json"});
  CHECK_THROWS_WITH_AS(write_file_atomically(dir / "none/a", "x"),
                       doctest::Contains("No such file or directory"), Error);
  fs::create_directories(dir / "taken/inside");
  CHECK_THROWS_WITH_AS(write_file_atomically(dir / "taken", "x"),
                       doctest::Contains("cannot rename"), Error);
  CHECK(dir.names().size() == 2);
}

TEST_CASE("two names are exchanged, with what they stand for") {
  const TempDir dir;
  fs::create_directories(dir / "a");
  fs::create_directories(dir / "b");
  std::ofstream(dir / "a/one") << "1";
  std::ofstream(dir / "b/two") << "2";
  exchange_paths(dir / "a", dir / "b");
  CHECK(read_file(dir / "a/two") == "2");
  CHECK(read_file(dir / "b/one") == "1");
  CHECK_THROWS_AS(exchange_paths(dir / "a", dir / "none"), Error);
}
