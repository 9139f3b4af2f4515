// SPDX-License-Identifier: Apache-2.0
// What a user sees of a job in which one rank fails, is stopped, or was started for something else:
// one line from the rank that it comes from, its exit code, and no process that is left waiting.
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "support/annulus.h"

using annulus::testing::call;
using annulus::testing::call_each;
using annulus::testing::call_on;
using annulus::testing::Command;
using annulus::testing::Finished;
using annulus::testing::lines_of;
using annulus::testing::read_json;
using annulus::testing::read_text;
using annulus::testing::run;
using annulus::testing::source_path;
using annulus::testing::TemporaryDirectory;
using annulus::testing::write_text;

namespace {

namespace fs = std::filesystem;

std::vector<std::string> digits(const std::string& run_dir) {
  return {"train",     source_path("configs/digits.toml"),
          "--set",     "threads=1",
          "--set",     "train={steps=4}",
          "--set",     "comm.timeout_s=60",
          "--run-dir", run_dir};
}

// What annulus itself had to say, its warnings left out: mpirun adds lines of its own.
std::vector<std::string> errors_of(const Finished& finished) {
  std::vector<std::string> errors;
  for (const std::string& line : lines_of(finished.err)) {
    if (line.rfind("annulus: ", 0) == 0 && line.rfind("annulus: warning: ", 0) != 0)
      errors.push_back(line);
  }
  return errors;
}

// The job ended with `code` and one line, which holds all of `parts`.
void check_one_error(const Finished& finished, int code, const std::vector<std::string>& parts) {
  INFO(finished.err);
  CHECK(finished.code == code);
  const std::vector<std::string> errors = errors_of(finished);
  REQUIRE(errors.size() == 1);
  for (const std::string& part : parts) {
    CAPTURE(part);
    CHECK(errors[0].find(part) != std::string::npos);
  }
}

void check_failure_in(const std::string& phase) {
  for (const int ranks : {2, 4}) {
    CAPTURE(ranks);
    const int rank = ranks / 2;
    TemporaryDirectory directory;
    const std::string fault = fmt::format("throw:5@rank={},phase={}", rank, phase);
    const Finished finished = call_on(ranks, digits(directory / "run"), {{"ANNULUS_FAULT", fault}});
    check_one_error(finished, 5, {fmt::format("[rank {} on ", rank), "phase " + phase});
  }
}

std::vector<std::string> with(std::vector<std::string> words, std::vector<std::string> more) {
  words.insert(words.begin(), ANNULUS_BINARY);
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

TEST_CASE("B92 a rank that fails alone when the ranks find each other ends the job with its line") {
  check_failure_in("join");
}
TEST_CASE("B92 a rank that fails alone when memory is first shared ends the job with its line") {
  check_failure_in("segments");
}
TEST_CASE("B92 a rank that fails alone at the start of its work ends the job with its line") {
  check_failure_in("start");
}
TEST_CASE("B92 a rank that fails alone when it opens the data ends the job with its line") {
  check_failure_in("scan");
}
TEST_CASE("B92 a rank that fails alone when it prepares the model ends the job with its line") {
  check_failure_in("model");
}
TEST_CASE("B92 a rank that fails alone when it plans the sums ends the job with its line") {
  check_failure_in("reducer");
}
TEST_CASE("B92 a rank that fails alone when gradients are shared ends the job with its line") {
  check_failure_in("windows");
}
TEST_CASE("B92 a rank that fails alone when it evaluates ends the job with its line") {
  check_failure_in("evaluate");
}
TEST_CASE("B92 a rank that fails alone when it saves ends the job with its line") {
  check_failure_in("save");
}

TEST_CASE("B92 a rank that fails alone in its first step ends the job, and the summary has it") {
  for (const int ranks : {2, 4}) {
    CAPTURE(ranks);
    const int rank = ranks / 2;
    TemporaryDirectory directory;
    const std::string fault = fmt::format("throw:3@rank={},iteration=0", rank);
    const Finished finished = call_on(ranks, digits(directory / "run"), {{"ANNULUS_FAULT", fault}});
    check_one_error(finished, 3, {fmt::format("[rank {} on ", rank), "iteration 0"});
    const auto summary = read_json(directory / "run/summary.json");
    CHECK(summary["status"] == "failed");
    CHECK(summary["exit_code"] == 3);
    CHECK(summary["rank"] == rank);
  }
}

TEST_CASE("B02 of the ranks that lost a stopped one, one speaks and names it, rank 0 too") {
  for (const int lost : {0, 2}) {
    TemporaryDirectory directory;
    std::vector<std::string> words = digits(directory / "run");
    words.insert(words.end(), {"--set", "comm.timeout_s=1"});
    const Finished finished = call_on(
        4, words, {{"ANNULUS_FAULT", fmt::format("signal:{}@rank={},iteration=2", SIGSTOP, lost)}});
    check_one_error(finished, 7, {fmt::format("no answer from rank {} (", lost)});
  }
}

TEST_CASE("a mistake in ANNULUS_FAULT is one line with the variable, the value and the grammar") {
  TemporaryDirectory directory;
  const std::vector<std::string> words = digits(directory / "run");
  check_one_error(call_on(4, words, {{"ANNULUS_FAULT", "bogus"}}), 2,
                  {"[rank 0 on ", "ANNULUS_FAULT", "'bogus'", "KIND@rank=R,phase=P"});
  check_one_error(call_on(2, words, {{"ANNULUS_FAULT", "kill@rank=2,iteration=0"}}), 2,
                  {"ANNULUS_FAULT 'kill@rank=2,iteration=0'", "expected a rank below 2, found 2"});
  CHECK_FALSE(fs::exists(directory / "run"));
}

TEST_CASE("a wrong ANNULUS_NODES is one line") {
  TemporaryDirectory directory;
  check_one_error(call_on(4, digits(directory / "run"), {{"ANNULUS_NODES", "two"}}), 2,
                  {"[rank 0 on ", "ANNULUS_NODES", "found two"});
}

TEST_CASE("a directory or a log that cannot be written is one line, from whichever rank") {
  TemporaryDirectory directory;
  write_text(directory / "file", "");
  check_one_error(call_on(4, digits(directory / "file/run")), 4, {"[rank 0 on ", "file"});
  // Logs that cannot be opened, of one rank and of all: a directory has the name.
  for (const int first : {1, 0}) {
    const std::string run_dir = directory / ("run" + std::to_string(first));
    REQUIRE(call_on(2, digits(run_dir)).code == 0);
    for (int rank = first; rank < 2; ++rank) {
      const std::string log = fmt::format("{}/log/rank_000{}.log", run_dir, rank);
      fs::remove(log);
      fs::create_directory(log);
    }
    std::vector<std::string> words = digits(run_dir);
    words.insert(words.end(), {"--resume", "--set", "train={steps=6}"});
    check_one_error(call_on(2, words), 4,
                    {fmt::format("[rank {} on ", first), fmt::format("rank_000{}.log", first)});
  }
}

TEST_CASE("ranks that were started for different configs are refused, with rank and key") {
  TemporaryDirectory directory;
  const std::vector<std::string> words = digits(directory / "run");
  const auto refused = [&](const std::vector<std::string>& other, const std::string& key,
                           const std::string& values) {
    const auto same = with(words, {"--set", "optimizer.momentum=0.5"});
    check_one_error(call_each({same, same, other}), 2,
                    {"[rank 2 on ", "key '" + key + "'", values});
  };
  refused(with(words, {"--set", "optimizer.momentum=0.25"}), "optimizer.momentum",
          "expected 0.5, found 0.25");
  refused(with(words, {"--set", "optimizer.momentum=0.5", "--set", "comm.bucket_mb=7"}),
          "comm.bucket_mb", "expected nothing, found 7");
  std::vector<std::string> another = words;
  another[1] = source_path("configs/digits_mlp.toml");
  refused(with(another, {"--set", "optimizer.momentum=0.5"}), "name",
          R"(expected "digits", found "digits_mlp")");
  CHECK_FALSE(fs::exists(directory / "run"));

  // Other words for the same.
  std::vector<std::string> other_path = words;
  other_path[1] = source_path("configs/../configs/digits.toml");
  CHECK(
      call_each({with(words, {"--set", "seed=3"}), with(other_path, {"--set", "seed = 3"})}).code ==
      0);
}

TEST_CASE("ranks of different commands or builds are refused") {
  TemporaryDirectory directory;
  const std::vector<std::string> train = with(digits(directory / "run"), {});
  std::vector<std::string> bench = {ANNULUS_BINARY, "bench", "step", train[2]};
  check_one_error(call_each({train, bench}), 2,
                  {"[rank 1 on ", "command train, found", "command bench step"});

  // A copy of the program that says it was built from something else.
  const std::string version = lines_of(call({"--version"}).out).at(0);
  const std::string build = version.substr(version.find('('));
  std::string bytes = read_text(ANNULUS_BINARY);
  const std::string id = build.substr(1, build.size() - 2);
  REQUIRE(bytes.find(id) != std::string::npos);
  for (std::size_t at = bytes.find(id); at != std::string::npos; at = bytes.find(id, at + 1))
    bytes[at] = '#';
  write_text(directory / "annulus", bytes);
  fs::permissions(directory / "annulus", fs::perms::owner_all);
  std::vector<std::string> other = train;
  other[0] = directory / "annulus";
  check_one_error(call_each({train, other}), 2,
                  {"[rank 1 on ", "expected " + version, "found annulus ", "(#" + id.substr(1)});
}

TEST_CASE("threads far beyond the cores are refused at once") {
  TemporaryDirectory directory;
  std::vector<std::string> words = digits(directory / "run");
  words[3] = "threads=1000";
  check_one_error(call_on(2, words), 2, {"'threads'", "found 1000"});
}

TEST_CASE("B79 a signal before the first update stops the job, which has nothing to save") {
  TemporaryDirectory directory;
  // It waits, blocked, when the program starts: as if it had come in the first moment.
  const std::string start = R"([ "${OMPI_COMM_WORLD_RANK:-1}" != 1 ] || kill -TERM $$; exec "$@")";
  std::vector<std::string> words = {"env", "--block-signal=TERM", "sh", "-c", start, "sh"};
  const auto train = with(digits(directory / "run"), {});
  words.insert(words.end(), train.begin(), train.end());
  check_one_error(run(Command{words}), 75, {"SIGTERM", "nothing to save"});
  check_one_error(call_each({words, words}), 75, {"[rank 1 on ", "SIGTERM", "nothing to save"});
  CHECK_FALSE(fs::exists(directory / "run"));
}

TEST_CASE("B79 SIGHUP stops and saves like SIGTERM, but not under nohup") {
  const std::map<std::string, std::string> hangup = {
      {"ANNULUS_FAULT", fmt::format("signal:{}@rank=0,iteration=1", SIGHUP)}};
  const auto train_under = [&](const char* wrapper) {
    TemporaryDirectory directory;
    Command command{with(digits(directory / "run"), {}), hangup};
    command.words.insert(command.words.begin(), {"env", wrapper});
    const Finished finished = run(command);
    INFO(finished.err);
    const auto summary = read_json(directory / "run/summary.json");
    CHECK(summary["exit_code"] == finished.code);
    CHECK(fs::exists(fmt::format("{}/run/checkpoints/step_{:010}", directory.path(),
                                 summary["steps"].get<int>())));
    return std::pair{finished.code, summary["steps"].get<int>()};
  };
  CHECK(train_under("--default-signal=HUP") == std::pair{75, 2});
  CHECK(train_under("--ignore-signal=HUP") == std::pair{0, 4});
}

TEST_CASE("a run goes on when nobody reads what it prints") {
  TemporaryDirectory directory;
  // The program starts when the reader has closed its end.
  const std::string script = R"(cd "$0"
    { until [ -e closed ]; do :; done; "$@"; echo $? >code; } 2>&1 | { exec <&-; : >closed; })";
  Command command{{"env", "--default-signal=PIPE", "sh", "-c", script, directory.path()}};
  const auto train = with(digits(directory / "run"), {});
  command.words.insert(command.words.end(), train.begin(), train.end());
  run(command);
  CHECK(read_text(directory / "code") == "0\n");
  CHECK(read_json(directory / "run/summary.json")["steps"] == 4);
  CHECK(read_text(directory / "run/log/rank_0000.log").find("done after 4 updates") !=
        std::string::npos);
}

TEST_CASE("a file that grows beyond the allowed size is an error of the output") {
  TemporaryDirectory directory;
  Command command{{"sh", "-c", R"(ulimit -f 20; exec "$@")", "sh"}};
  const auto train = with(digits(directory / "run"), {});
  command.words.insert(command.words.end(), train.begin(), train.end());
  check_one_error(run(command), 4, {"step_0000000004", "File too large"});
  CHECK(read_json(directory / "run/summary.json")["exit_code"] == 4);
  CHECK(fs::is_empty(directory / "run/checkpoints"));
}
