// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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
  CHECK_THROWS_WITH_AS(
      write_file_atomically(dir / "taken", "x"),
      ("cannot give '" + dir / "taken" + "' its name: Is a directory (errno 21)").c_str(), Error);
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

TEST_CASE("what is no regular file is neither waited for nor read without end") {
  const TempDir dir;
  REQUIRE(::mkfifo((dir / "pipe").c_str(), 0600) == 0);
  CHECK_THROWS_WITH_AS(read_file(dir / "pipe"),
                       ("'" + dir / "pipe" + "' is not a regular file").c_str(), Error);
  CHECK_THROWS_WITH_AS(MetricsFile(dir / "pipe"),
                       ("'" + dir / "pipe" + "' is not a regular file").c_str(), Error);
  CHECK_THROWS_WITH_AS(read_file("/dev/zero"), "'/dev/zero' is not a regular file", Error);
  CHECK_THROWS_WITH_AS(read_file(dir.path()),
                       ("'" + dir.path() + "' is not a regular file").c_str(), Error);
}

TEST_CASE("a path that cannot be looked at is an error of output with the reason") {
  const TempDir dir;
  fs::create_symlink("loop", dir / "loop");
  std::ofstream(dir / "file") << "x";
  CHECK(path_exists(dir / "file"));
  CHECK_FALSE(path_exists(dir / "none"));
  CHECK_FALSE(path_exists(dir / "file/below"));
  const std::string reason = ": Too many levels of symbolic links (errno 40)";
  CHECK_THROWS_WITH_AS(path_exists(dir / "loop/x"),
                       ("cannot look at '" + dir / "loop/x" + "'" + reason).c_str(), Error);
  CHECK_THROWS_WITH_AS(file_bytes(dir / "loop"),
                       ("cannot read '" + dir / "loop" + "'" + reason).c_str(), Error);
  CHECK_THROWS_WITH_AS(make_directories(dir / "loop/x"), doctest::Contains("Too many levels"),
                       Error);
}

TEST_CASE("errors of a temporary file have the name that the user knows, and say what is wanted") {
  const TempDir dir;
  const auto with_name = [&](const Error& error) {
    name_errors_after("run/a.h5", "run/.a.h5.tmp_1", [&] { throw Error(error); });
  };
  CHECK_THROWS_WITH_AS(
      with_name(
          Error(ErrorKind::output, "'x' of 'run/.a.h5.tmp_1'").values("1", "run/.a.h5.tmp_1")),
      "'x' of 'run/a.h5': expected 1, found run/a.h5", Error);
  CHECK_THROWS_WITH_AS(with_name(Error(ErrorKind::output, "plain")), "plain", Error);
  CHECK(why_not_written(ENOSPC, 200, 100) ==
        "No space left on device (errno 28); it needs 200 bytes, 100 were free; make room there");
  CHECK(why_not_written(ENOSPC, 0, std::nullopt) ==
        "No space left on device (errno 28); make room there");
  CHECK(why_not_written(EDQUOT, 200, 100) ==
        "Disk quota exceeded (errno 122); it needs 200 bytes; make room there");
  CHECK(why_not_written(EIO, 200, 100) == "Input/output error (errno 5)");
  CHECK_THROWS_WITH_AS(
      write_file_atomically(dir / "none/a.json", "x"),
      ("cannot make '" + dir / "none/a.json" + "': No such file or directory (errno 2)").c_str(),
      Error);
  CHECK(free_bytes(dir / "x").value_or(0) > 0);
}

TEST_CASE("metrics that the disk does not take are one error and leave whole lines") {
  const TempDir dir;
  const std::string path = dir / "metrics.jsonl";
  // In a process of its own, by which no file of more than 20 bytes can be written.
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{20, 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    std::string text;
    try {
      MetricsFile metrics(path);
      for (int i = 1; i <= 2; ++i) metrics.append(JsonObject().set("update", i));
    } catch (const Error& error) {
      text = error.what();
    }
    std::_Exit(text == "cannot write '" + path + "': File too large (errno 27)" ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(read_file(path) == "{\"update\":1}\n");
}
