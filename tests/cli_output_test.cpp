// SPDX-License-Identifier: Apache-2.0
// What a user sees when a stream, a disk or a signal ends the work.
#include <csignal>
#include <filesystem>

#include <doctest/doctest.h>
#include <sys/stat.h>

#include "support/annulus.h"

using annulus::testing::call;
using annulus::testing::Finished;
using annulus::testing::lines_of;
using annulus::testing::read_text;
using annulus::testing::run;
using annulus::testing::source_path;
using annulus::testing::TemporaryDirectory;

namespace {

// The program in a shell, as "$0".
Finished shell(const std::string& script) {
  return run({{"sh", "-c", script, ANNULUS_BINARY}});
}

}  // namespace

TEST_CASE("a standard output that takes nothing is an error of output") {
  const std::string config = source_path("configs/digits.toml");
  const std::string data = source_path("data/digits.h5");
  const std::string lead = "annulus: output: standard output cannot be written";
  for (const std::string& words : {std::string("keys"), std::string("--help"),
                                   std::string("--version"), "check '" + config + "' --json",
                                   "data info '" + data + "'", "data verify '" + data + "'"}) {
    CAPTURE(words);
    const Finished full = shell("\"$0\" " + words + " > /dev/full");
    CHECK(full.code == 4);
    CHECK(full.err.find(lead) == 0);
    CHECK(lines_of(full.err).size() == 1);
    const Finished closed = shell("\"$0\" " + words + " >&-");
    CHECK(closed.code == 4);
    CHECK(closed.err.find(lead) == 0);
  }
  CHECK(shell("\"$0\" keys > /dev/full").err == lead + ": No space left on device (errno 28)\n");
}

TEST_CASE("what is printed to a closed stream never ends up in a file") {
  TemporaryDirectory directory;
  const std::string file = directory / "a.h5";
  const std::string good = directory / "b.h5";
  const std::string words = " data synth samples=20,shape=3x5x7 '";
  CHECK(shell("\"$0\"" + words + file + "' <&- >&- 2>&-").code == 4);
  REQUIRE(shell("\"$0\"" + words + good + "'").code == 0);
  CHECK(read_text(file) == read_text(good));
}

TEST_CASE("a pipe or a device as config is refused, not waited for") {
  TemporaryDirectory directory;
  REQUIRE(mkfifo((directory / "pipe").c_str(), 0600) == 0);
  for (const std::string& path : {directory / "pipe", std::string("/dev/zero")}) {
    for (const char* command : {"check", "train"}) {
      const Finished finished = call({command, path});
      CHECK(finished.code == 2);
      CHECK(finished.err.find("'" + path + "' is not a regular file\n") != std::string::npos);
    }
  }
}

TEST_CASE("data verify names each fault on standard error") {
  TemporaryDirectory directory;
  const std::string file = directory / "a.h5";
  REQUIRE(call({"data", "synth", "samples=2,shape=1,type=f32", file}).code == 0);
  CHECK(call({"data", "verify", file}).err.empty());
  // The first label becomes negative: labels are the last data set that is written.
  std::string text = read_text(file);
  const std::string labels("\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0", 16);
  const std::size_t at = text.rfind(labels);
  REQUIRE(at != std::string::npos);
  annulus::testing::write_text(file, text.replace(at, 8, 8, '\xff'));
  const Finished finished = call({"data", "verify", file});
  CHECK(finished.code == 3);
  CHECK(finished.err == "annulus: data: data set 'train/labels' of '" + file +
                            "': sample 0: expected a class id, found -1\n");
  CHECK(finished.out.find("train/images") == 0);
  CHECK(finished.out.find("no fault") == std::string::npos);
  const Finished as_json = call({"data", "verify", file, "--json"});
  CHECK(as_json.code == 3);
  const auto found = nlohmann::json::parse(as_json.out)["datasets"];
  CHECK_FALSE(found[0].contains("fault"));
  CHECK(found[1]["fault"].get<std::string>().find("found -1") != std::string::npos);
}

TEST_CASE("a signal ends data synth with nothing left") {
  for (const int signal : {SIGTERM, SIGINT}) {
    TemporaryDirectory directory;
    // The signal comes when there is a temporary file. Shells ignore SIGINT in what they start
    // behind them, so the program stays in front and is signalled from behind.
    const std::string script = "cd '" + directory.path() +
                               "' || exit 99\n"
                               "(until ls -A | grep -q tmp; do :; done; kill -" +
                               std::to_string(signal) +
                               " $$) &\n"
                               "exec \"$0\" data synth "
                               "samples=20000,shape=3x64x64,type=f64,storage=compressed a.h5";
    const Finished finished = shell(script);
    CHECK(finished.code == 75);
    CHECK(finished.err == std::string("annulus: stopped: ") +
                              (signal == SIGTERM ? "SIGTERM" : "SIGINT") +
                              " came; 'a.h5' is not written\n");
    CHECK(std::filesystem::is_empty(directory.path()));
  }
}

TEST_CASE("an error that ends a run is in the rank's log, with what it said on the terminal") {
  TemporaryDirectory directory;
  const std::string run_dir = directory / "run";
  // No file of more than 100 kB can be written: metrics can, a checkpoint cannot.
  const Finished finished =
      shell("ulimit -f 100; exec \"$0\" train '" + source_path("configs/digits.toml") +
            "' --set train.steps=2 --run-dir '" + run_dir + "'");
  CHECK(finished.code == 4);
  const std::string line = lines_of(finished.err).back();
  CHECK(line.find("annulus: output: cannot write '") == 0);
  CHECK(line.find("step_0000000002/tensors.h5': File too large (errno 27)") != std::string::npos);
  CHECK(finished.err.find(".tmp_") == std::string::npos);
  const std::string log = read_text(run_dir + "/log/rank_0000.log");
  CHECK(log.find(" error " + line.substr(std::string("annulus: ").size()) + "\n") !=
        std::string::npos);
  CHECK(std::filesystem::is_empty(run_dir + "/checkpoints"));
}

TEST_CASE("a working directory that is gone is no bug") {
  TemporaryDirectory directory;
  const std::string gone = directory / "gone";
  std::filesystem::create_directory(gone);
  const std::string start = "cd '" + gone + "' && rmdir '" + gone + "' && exec \"$0\" ";
  const std::string config = "'" + source_path("configs/digits.toml") + "'";
  const Finished check = shell(start + "check " + config + " --set data.train.file=x.h5");
  CHECK(check.code == 0);
  CHECK(check.err.find("x.h5: no such data file") != std::string::npos);
  std::filesystem::create_directory(gone);
  const Finished train = shell(start + "train " + config);
  CHECK(train.code == 4);
  CHECK(lines_of(train.err).size() == 1);
}
