// SPDX-License-Identifier: Apache-2.0
// The other commands, and what a user sees when something is wrong.
#include <filesystem>
#include <map>
#include <set>

#include <doctest/doctest.h>

#include "support/annulus.h"

using annulus::testing::call;
using annulus::testing::call_on;
using annulus::testing::Finished;
using annulus::testing::lines_of;
using annulus::testing::read_text;
using annulus::testing::source_path;
using annulus::testing::TemporaryDirectory;
using annulus::testing::write_text;
using nlohmann::json;

TEST_CASE("check of ResNet-50 without its data gives the published numbers") {
  const Finished finished =
      call({"check", source_path("configs/imagenet_resnet50.toml"), "--json"});
  INFO(finished.err);
  REQUIRE(finished.code == 0);
  const json found = json::parse(finished.out);
  CHECK(found["parameters"] == 25557032);
  CHECK(found["macs_per_sample"].get<double>() == doctest::Approx(4.089e9).epsilon(0.005));
  CHECK(found["steps_per_epoch"].get<std::int64_t>() > 0);
  CHECK(found["memory_per_rank_bytes"].get<std::int64_t>() > 500'000'000);
  CHECK(finished.err.find("no such data file") != std::string::npos);
}

TEST_CASE("check finds all of several mistakes at once, a line each with its place") {
  TemporaryDirectory directory;
  write_text(directory / "bad.toml",
             "nmae = \"x\"\n"
             "lr = 0.1\n"
             "[batch]\n"
             "global = -5\n"
             "[optimizer]\n"
             "learning_rat = 0.1\n"
             "momentum = 1.5\n"
             "[train]\n"
             "epochs = \"two\"\n"
             "[data]\n"
             "synthetic = true\n"
             "[model]\n"
             "input = [1, 8, 8]\n"
             "classes = 10\n"
             "layers = [ { flatten = true }, { linear = 10 } ]\n");
  const Finished finished = call({"check", directory / "bad.toml"});
  CHECK(finished.code == 2);
  const std::vector<std::string> lines = lines_of(finished.err);
  CHECK(lines.size() == 6);
  const char* places[] = {":1:1: ", ":2:1: ", ":4:", ":6:1: ", ":7:", ":9:"};
  for (std::size_t i = 0; i < std::min<std::size_t>(lines.size(), 6); ++i) {
    INFO(lines[i]);
    CHECK(lines[i].find("bad.toml" + std::string(places[i])) != std::string::npos);
  }
}

TEST_CASE("eight ranks with a bad config print its problems once") {
  TemporaryDirectory directory;
  write_text(directory / "bad.toml", "nmae = \"x\"\n");
  const Finished one = call({"train", directory / "bad.toml"});
  const Finished eight = call_on(8, {"train", directory / "bad.toml"});
  CHECK(one.code == 2);
  CHECK(eight.code == 2);
  std::size_t count = 0;
  for (const std::string& line : lines_of(eight.err))
    count += line.find("unknown key 'nmae'") != std::string::npos;
  CHECK(count == 1);
}

TEST_CASE("exit codes are those of the design") {
  TemporaryDirectory directory;
  const std::string config = source_path("configs/digits.toml");
  CHECK(call({}).code == 2);
  CHECK(call({"trian"}).code == 2);
  CHECK(call({"--help"}).code == 0);
  CHECK(call({"train", "--help"}).code == 0);
  CHECK(call({"--version"}).code == 0);
  CHECK(call({"train"}).code == 2);
  CHECK(call({"train", directory / "none.toml"}).code == 2);
  CHECK(call({"train", config, "--set", "optimizer.lrr=1"}).code == 2);
  CHECK(
      call({"train", config, "--set", "data.train.file=/no/such.h5", "--run-dir", directory / "a"})
          .code == 3);
  CHECK(call({"train", config, "--resume", "--run-dir", directory / "no-such"}).code == 4);
  CHECK(call({"train", config, "--resume-from", directory / "no-such"}).code == 4);
  CHECK(call({"train", config, "--set", "device=cuda", "--run-dir", directory / "b"}).code == 5);
  CHECK(call({"train", config, "--set", "optimizer.lr=9000", "--set", "train.epochs=2", "--set",
              "optimizer.schedule={}", "--run-dir", directory / "c"})
            .code == 6);
  CHECK(call({"eval", config, "--weights", directory / "none"}).code == 4);
  const std::string input = source_path("data/digits.h5");
  CHECK(call({"infer", config, "--weights", directory / "none", "--input", input, "--output",
              directory / "out.h5"})
            .code == 4);
  CHECK(call({"infer", config, "--weights", directory / "none", "--input", directory / "none.h5",
              "--output", directory / "out.h5"})
            .code == 3);
  CHECK(call({"data", "info", directory / "none.h5"}).code == 3);
  CHECK(call({"data", "import", "idy", directory.path(), directory / "out.h5"}).code == 2);
  CHECK(call({"checkpoint", "info", directory / "none"}).code == 4);
  CHECK(call({"checkpoint", "verify", directory / "none"}).code == 4);
}

TEST_CASE("a word that is no command is named, with the one that was meant") {
  const Finished near = call({"trian", "x.toml"});
  CHECK(near.code == 2);
  CHECK(near.err == "annulus: 'trian' is no command of 'annulus'; did you mean 'train'?\n");
  const Finished sub = call({"data", "zzz"});
  CHECK(sub.code == 2);
  CHECK(sub.err ==
        "annulus: 'zzz' is no command of 'data'; there are import, info, verify, synth\n");
  const Finished range = call({"bench", "step", "x.toml", "--steps", "0"});
  CHECK(range.code == 2);
  CHECK(range.err.find("Value 0 not in range 1 to 1000000000") != std::string::npos);
  CHECK(call({"train", "x.toml", "--run-dir", ""}).code == 2);
}

TEST_CASE("a model that no machine holds is planned at once and refused with both numbers") {
  TemporaryDirectory directory;
  write_text(directory / "big.toml",
             "[data]\nsynthetic = true\n[batch]\nglobal = 64\n[train]\nsteps = 3\n"
             "[model]\ninput = [100000]\nclasses = 10\n"
             "layers = [ { linear = 300000 }, { linear = 10 } ]\n");
  const Finished check = call({"check", directory / "big.toml", "--json"});
  INFO(check.err);
  REQUIRE(check.code == 0);
  // Weights and gradients of 100000 x 300000 alone; some machines need a reordered copy too.
  CHECK(json::parse(check.out)["memory_per_rank_bytes"].get<double>() > 2.4e11);
  CHECK(check.err.find("on this machine: not enough memory") != std::string::npos);
  const Finished train = call({"train", directory / "big.toml", "--run-dir", directory / "run"});
  CHECK(train.code == 5);
  CHECK(train.err.find("annulus: resources: not enough memory for 1 rank") != std::string::npos);
  CHECK(!std::filesystem::exists(directory / "run"));
}

TEST_CASE("a run that is refused before its first step leaves no directory, and touches none") {
  TemporaryDirectory directory;
  const std::string config = source_path("configs/digits.toml");
  const std::string run_dir = directory / "run";
  const std::vector<std::vector<std::string>> refused = {
      {"--set", "data.train.file=nowhere.h5"},
      {"--set", "batch.global=5000", "--set", "data.drop_last=true"},
      {"--set", "batch.global=2"},
      {"--resume-from", directory / "nothing"}};
  for (std::vector<std::string> words : refused) {
    CAPTURE(words[1]);
    words.insert(words.begin(), {"train", config, "--run-dir", run_dir});
    const Finished finished = call(words);
    CHECK(finished.code >= 2);
    CHECK(finished.code <= 4);
    CHECK(!std::filesystem::exists(run_dir));
  }
  REQUIRE(call({"train", config, "--run-dir", run_dir, "--set", "train.steps=2"}).code == 0);
  const std::string summary = read_text(run_dir + "/summary.json");
  const Finished resumed =
      call({"train", config, "--run-dir", run_dir, "--resume", "--set", "batch.shards=7"});
  CHECK(resumed.code == 2);
  CHECK(read_text(run_dir + "/summary.json") == summary);
}

TEST_CASE("check of a sweep prints one list; a sweep is looked at whole before its first run") {
  TemporaryDirectory directory;
  const std::string config = source_path("configs/digits.toml");
  const Finished check =
      call({"check", config, "--json", "--set", "sweep.\"optimizer.lr\"=[0.1, 0.2]"});
  REQUIRE(check.code == 0);
  CHECK(json::parse(check.out).size() == 2);
  const std::string good = source_path("data/digits.h5");
  const Finished sweep =
      call({"train", config, "--run-dir", directory / "runs", "--set", "train.steps=2", "--set",
            "sweep.\"data.train.file\"=[\"" + good + "\", \"nowhere.h5\"]"});
  CHECK(sweep.code == 3);
  CHECK(sweep.err.find("nowhere.h5") != std::string::npos);
  CHECK(!std::filesystem::exists(directory / "runs"));
}

TEST_CASE("data synth, info and verify agree on a file") {
  TemporaryDirectory directory;
  const std::string file = directory / "random.h5";
  REQUIRE(call({"data", "synth", "samples=20,shape=3x5x7,classes=4,test=6", file}).code == 0);
  const json info = json::parse(call({"data", "info", file, "--json"}).out);
  std::set<std::string> paths;
  for (const json& dataset : info["datasets"]) paths.insert(dataset["path"].get<std::string>());
  CHECK(paths ==
        std::set<std::string>{"train/images", "train/labels", "test/images", "test/labels"});
  CHECK(call({"data", "verify", file}).code == 0);
  // A file that exists is never overwritten.
  CHECK(call({"data", "synth", "samples=20,shape=3x5x7", file}).code == 4);
}

TEST_CASE("bench step: the parts add up to the step") {
  const Finished finished =
      call({"bench", "step", source_path("configs/cifar10_resnet20.toml"), "--set",
            "data.synthetic=true", "--set", "batch.global=8", "--steps", "8", "--json"});
  INFO(finished.err);
  REQUIRE(finished.code == 0);
  const json bench = json::parse(finished.out);
  double parts = 0;
  for (const char* name : {"data_s", "forward_s", "backward_s", "wait_s", "update_s"}) {
    parts += bench[name]["mean"].get<double>();
  }
  CHECK(parts == doctest::Approx(bench["step_s"]["mean"].get<double>()).epsilon(0.05));
  CHECK(bench["samples_per_s"].get<double>() ==
        doctest::Approx(8 * 8 / bench["wall_s"].get<double>()).epsilon(1e-6));
  CHECK(bench["peak_rss_bytes"].get<std::int64_t>() > 0);
}

TEST_CASE("bench layers: every layer both ways, and shares that add up to the step") {
  const Finished finished = call({"bench", "layers", source_path("configs/digits.toml"), "--steps",
                                  "3", "--warmup", "1", "--json", "--set", "threads=1"});
  REQUIRE(finished.code == 0);
  const json found = json::parse(finished.out);
  double share = 0;
  std::set<std::string> passes;
  for (const json& layer : found["layers"]) {
    share += layer["share"].get<double>();
    passes.insert(layer["layer"].get<std::string>() + ' ' + layer["pass"].get<std::string>());
  }
  CHECK(share == doctest::Approx(1).epsilon(0.01));
  for (const char* pass : {"conv1 forward", "conv1 backward", "batch_norm3 backward",
                           "linear1 forward", "optimizer update"}) {
    CHECK(passes.count(pass) == 1);
  }
}

TEST_CASE("bench data: what is read, how, and at which rates") {
  const Finished finished = call({"bench", "data", source_path("configs/digits.toml"), "--seconds",
                                  "0.05", "--json", "--set", "data.train.shuffle=true"});
  INFO(finished.err);
  REQUIRE(finished.code == 0);
  const json found = json::parse(finished.out);
  CHECK(found["file"].get<std::string>().ends_with("data/digits.h5"));
  CHECK(found["batch"] == 64);
  CHECK(found["sample_bytes"] == 64);
  CHECK(found["reads_by"] == "offsets");
  CHECK(found["bytes_per_s"].get<double>() ==
        doctest::Approx(64 * found["samples_per_s"].get<double>()));
  CHECK(found["loader_samples_per_s"].get<double>() > 0);
  const Finished none = call({"bench", "data", source_path("configs/imagenet_resnet50.toml"),
                              "--set", "data.synthetic=true"});
  CHECK(none.code == 2);
  CHECK(none.err.find("nothing to read") != std::string::npos);
  CHECK(call({"bench", "data", source_path("configs/digits.toml"), "--seconds", "0"}).code == 2);
}

TEST_CASE("bench infer: throughput and latency that fit together, on 1 and 2 ranks") {
  for (int ranks : {1, 2}) {
    CAPTURE(ranks);
    const Finished finished =
        call_on(ranks, {"bench", "infer", source_path("configs/digits.toml"), "--steps", "7",
                        "--warmup", "1", "--json", "--set", "threads=1"});
    INFO(finished.err);
    REQUIRE(finished.code == 0);
    const json found = json::parse(finished.out);
    CHECK(found["ranks"] == ranks);
    CHECK(found["batch"] == 64);
    CHECK(found["steps"] == 7);
    const json latency = found["latency_s"];
    CHECK(latency["min"] <= latency["p50"]);
    CHECK(latency["p50"] <= latency["p99"]);
    CHECK(latency["p99"] == latency["max"]);  // of 7
    CHECK(latency["median"] == latency["p50"]);
    const double rate = found["samples_per_s"].get<double>();
    if (ranks == 1) CHECK(rate == doctest::Approx(7 * 64 / found["wall_s"].get<double>()));
    CHECK(rate > 64 / found["latency_s"]["max"].get<double>() / 4);
  }
  const Finished few = call_on(2, {"bench", "infer", source_path("configs/digits.toml"), "--set",
                                   "batch.global=1", "--set", "batch.shards=1"});
  CHECK(few.code == 2);
  CHECK(few.err.find("batch.global = 1 leaves some of 2 ranks without a sample") !=
        std::string::npos);
}

TEST_CASE("bench allreduce: right sums on 1 to 4 ranks, bandwidths that follow from the time") {
  for (int ranks : {1, 2, 3, 4}) {
    CAPTURE(ranks);
    const Finished finished = call_on(ranks, {"bench", "allreduce", "--bytes", "4,1K,2M,65540",
                                              "--steps", "3", "--warmup", "1", "--json"});
    INFO(finished.err);
    REQUIRE(finished.code == 0);
    std::vector<std::int64_t> sizes;
    for (const std::string& line : lines_of(finished.out)) {
      const json sum = json::parse(line);
      sizes.push_back(sum["bytes"].get<std::int64_t>());
      CHECK(sum["wrong"] == 0);
      const double bandwidth = sum["bytes"].get<double>() / sum["time_s"].get<double>();
      CHECK(sum["algbw_bytes_per_s"].get<double>() == doctest::Approx(bandwidth));
      CHECK(sum["busbw_bytes_per_s"].get<double>() ==
            doctest::Approx(bandwidth * 2 * (ranks - 1) / ranks));
    }
    CHECK(sizes == std::vector<std::int64_t>{4, 1024, 2 << 20, 65540});
  }
}

TEST_CASE("bench allreduce refuses what is no size of a buffer") {
  for (const char* bytes :
       {"0", "-4", "6", "", "1K,", "1T", "x", "1.5M", "99999999999999999999", "2000G"}) {
    CAPTURE(bytes);
    const Finished finished = call({"bench", "allreduce", "--bytes", bytes});
    CHECK(finished.code == 2);
    CHECK(lines_of(finished.err).size() == 1);
  }
  CHECK(call({"bench", "allreduce", "--bytes", "900G"}).code == 5);
}

TEST_CASE("a profile of a run has its layers, buckets and batches, a file a rank") {
  TemporaryDirectory directory;
  const Finished finished =
      call_on(2, {"train", source_path("configs/digits.toml"), "--run-dir", directory / "run",
                  "--set", "train.profile=2", "--set", "train.steps=6"});
  REQUIRE(finished.code == 0);
  for (const char* name : {"/run/trace/rank_0000.json", "/run/trace/rank_0001.json"}) {
    const json trace = json::parse(read_text(directory.path() + name));
    std::map<std::string, int> count;
    for (const json& event : trace["traceEvents"]) ++count[event["name"].get<std::string>()];
    CHECK(count["conv1 forward"] == 4);  // two shards in each of two steps
    CHECK(count["conv1 backward"] == 4);
    CHECK(count["bucket 0 reduce"] >= 1);
    CHECK(count["step 2 train"] == 1);
    CHECK(count["step 3 train"] == 1);
    CHECK(count["step 4 train"] == 0);
  }
}

TEST_CASE("configs whose data is not in the tree run on synthetic data") {
  TemporaryDirectory directory;
  for (const char* name : {"mnist_lenet", "cifar10_resnet20", "digits_mlp"}) {
    CAPTURE(name);
    const Finished finished =
        call_on(2, {"train", source_path("configs/" + std::string(name) + ".toml"), "--set",
                    "data.synthetic=true", "--set", "train.steps=2", "--set", "batch.global=8",
                    "--run-dir", directory / name});
    INFO(finished.err);
    CHECK(finished.code == 0);
  }
}

TEST_CASE("the reference of the config lists every key, and no other") {
  std::set<std::string> in_program;
  for (const std::string& line : lines_of(call({"keys"}).out)) {
    // The keys of a kind of layer stand under the kind's own name in the reference: "conv.kernel".
    const std::string key = line.substr(0, line.find('\t'));
    const std::string layers = "model.layers.";
    const bool of_kind =
        key.rfind(layers, 0) == 0 && key.find('.', layers.size()) != std::string::npos;
    in_program.insert(of_kind ? key.substr(layers.size()) : key);
  }
  REQUIRE(in_program.size() > 50);
  std::set<std::string> in_docs;
  for (const std::string& line : lines_of(read_text(source_path("docs/config.md")))) {
    if (line.rfind("| `", 0) == 0) in_docs.insert(line.substr(3, line.find('`', 3) - 3));
  }
  for (const std::string& key : in_program) {
    INFO(key, " is not in docs/config.md");
    CHECK(in_docs.count(key) == 1);
  }
  for (const std::string& key : in_docs) {
    INFO(key, " is in docs/config.md and not in the program");
    CHECK(in_program.count(key) == 1);
  }
}

TEST_CASE("a run works from another directory, with a path of spaces, and without HOME") {
  TemporaryDirectory directory;
  const std::string work = directory / "a path with spaces";
  std::filesystem::create_directories(work);
  annulus::testing::Command command{
      {ANNULUS_BINARY, "train", source_path("configs/digits_mlp.toml"), "--set", "train.epochs=1"}};
  command.directory = work;
  command.environment = {{"HOME", ""}, {"TERM", "dumb"}};
  const Finished finished = annulus::testing::run(command);
  INFO(finished.err);
  REQUIRE(finished.code == 0);
  std::size_t runs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(work + "/runs")) {
    CHECK(entry.path().filename().string().rfind("digits_mlp-", 0) == 0);
    ++runs;
  }
  CHECK(runs == 1);
}
