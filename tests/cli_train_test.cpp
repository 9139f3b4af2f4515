// SPDX-License-Identifier: Apache-2.0
// The main job as a user runs it: the program under mpirun, on the configs of the tree.
#include <cmath>
#include <filesystem>

#include <doctest/doctest.h>

#include "io/hdf5_source.h"
#include "support/annulus.h"

using annulus::testing::call;
using annulus::testing::call_on;
using annulus::testing::Finished;
using annulus::testing::lines_of;
using annulus::testing::read_json;
using annulus::testing::read_text;
using annulus::testing::source_path;
using annulus::testing::TemporaryDirectory;
using nlohmann::json;

namespace {

std::vector<std::string> digits(const std::string& run_dir, int epochs) {
  return {"train",     source_path("configs/digits.toml"),
          "--set",     "threads=1",
          "--set",     "batch.shards=4",
          "--set",     "train.epochs=" + std::to_string(epochs),
          "--run-dir", run_dir};
}

json train_digits(int ranks, int epochs,
                  const std::map<std::string, std::string>& environment = {}) {
  TemporaryDirectory directory;
  const std::string run_dir = directory / "run";
  const Finished finished = call_on(ranks, digits(run_dir, epochs), environment);
  INFO(finished.err);
  REQUIRE(finished.code == 0);
  json summary = read_json(run_dir + "/summary.json");
  summary["stderr"] = finished.err;
  return summary;
}

}  // namespace

TEST_CASE("digits on 1, 2 and 4 ranks give the same weights bit for bit") {
  const json one = train_digits(1, 3);
  CHECK(one["status"] == "completed");
  CHECK(one["exit_code"] == 0);
  CHECK(one["steps"] == 3 * 23);
  CHECK(one["samples_by_rank"] == json({3 * 1437}));
  for (int ranks : {2, 4}) {
    CAPTURE(ranks);
    const json many = train_digits(ranks, 3);
    CHECK(many["weights_hash"] == one["weights_hash"]);
    CHECK(many["train_loss"] == one["train_loss"]);
    CHECK(many["test"] == one["test"]);
    CHECK(many["ranks"] == ranks);
    CHECK(many["samples_by_rank"].size() == static_cast<std::size_t>(ranks));
    std::int64_t sum = 0;
    for (const json& samples : many["samples_by_rank"]) {
      sum += samples.get<std::int64_t>();
      // Equal shares, but for the last batch of an epoch (29 samples: 7, 7, 7 and 8).
      CHECK(std::abs(samples.get<std::int64_t>() - 3 * 1437 / ranks) <= 3);
    }
    CHECK(sum == 3 * 1437);
  }
}

// ResNet-20 on random images: batches large enough that convolutions go by Winograd's algorithm
// where the processor has one.
json train_resnet20(int ranks, const std::string& run_dir, const std::vector<std::string>& sets) {
  std::vector<std::string> words = {"train", source_path("configs/cifar10_resnet20.toml"),
                                    "--run-dir", run_dir};
  for (const std::string& set : sets) {
    words.emplace_back("--set");
    words.push_back(set);
  }
  const Finished finished = call_on(ranks, words);
  INFO(finished.err);
  REQUIRE(finished.code == 0);
  return read_json(run_dir + "/summary.json");
}

TEST_CASE("ResNet-20 on 1, 2 and 4 ranks gives the same weights bit for bit") {
  TemporaryDirectory directory;
  const std::vector<std::string> sets = {"data.synthetic=true", "batch.global=32", "batch.shards=4",
                                         "threads=1", "train.steps=3"};
  const json one = train_resnet20(1, directory / "1", sets);
  for (int ranks : {2, 4}) {
    CAPTURE(ranks);
    const json many = train_resnet20(ranks, directory / std::to_string(ranks), sets);
    CHECK(many["weights_hash"] == one["weights_hash"]);
    CHECK(many["train_loss"] == one["train_loss"]);
  }
}

TEST_CASE("digits on 3 and 5 ranks give the weights of one, or say that they differ by rounding") {
  const json one = train_digits(1, 1);
  for (int ranks : {3, 5}) {
    CAPTURE(ranks);
    const json many = train_digits(ranks, 1);
    const bool says =
        many["stderr"].get<std::string>().find("equal to rounding") != std::string::npos;
    CHECK((says || many["weights_hash"] == one["weights_hash"]));
    const double loss = one["train_loss"];
    CHECK(many["train_loss"].get<double>() == doctest::Approx(loss).epsilon(1e-5));
  }
}

TEST_CASE("digits on 8 ranks, more than shards, give the weights of one") {
  const json one = train_digits(1, 1);
  const json eight = train_digits(8, 1);
  CHECK(eight["weights_hash"] == one["weights_hash"]);
}

TEST_CASE(
    "digits on two pretended nodes give the weights of one and count the bytes between them") {
  const json one = train_digits(1, 1);
  const json two = train_digits(4, 1, {{"ANNULUS_NODES", "2"}});
  CHECK(two["weights_hash"] == one["weights_hash"]);
  CHECK(two["hosts"].size() == 2);
  CHECK(two["bytes_between_hosts"].get<std::int64_t>() > 0);
  CHECK(one["bytes_between_hosts"] == 0);
}

TEST_CASE("digits learn to a test top-1 of 0.97 with the config as it is") {
  TemporaryDirectory directory;
  const Finished finished =
      call_on(2, {"train", source_path("configs/digits.toml"), "--run-dir", directory / "run"});
  INFO(finished.err);
  REQUIRE(finished.code == 0);
  const json summary = read_json(directory / "run/summary.json");
  CHECK(summary["test"]["top1"].get<double>() >= 0.97);
  CHECK(summary["test"]["samples"] == 360);
}

TEST_CASE("a run resumed on other numbers of ranks ends with the weights of an undisturbed one") {
  TemporaryDirectory directory;
  // The schedule must not depend on where a run is cut: constant, so that `steps` may change.
  const std::vector<std::string> base = {"train", source_path("configs/digits.toml"),
                                         "--set", "threads=1",
                                         "--set", "optimizer.schedule={}"};
  const auto steps = [&](int ranks, const std::string& name, int count, bool resume) {
    std::vector<std::string> words = base;
    for (const std::string& word :
         {std::string("--set"), std::string("train={steps=") + std::to_string(count) + "}",
          std::string("--run-dir"), directory / name}) {
      words.push_back(word);
    }
    if (resume) words.push_back("--resume");
    const Finished finished = call_on(ranks, words);
    INFO(finished.err);
    REQUIRE(finished.code == 0);
  };
  steps(2, "whole", 60, false);
  steps(1, "cut", 20, false);
  steps(4, "cut", 40, true);
  steps(2, "cut", 60, true);
  const Finished diff = call({"checkpoint", "diff", directory / "whole/checkpoints/step_0000000060",
                              directory / "cut/checkpoints/step_0000000060"});
  CHECK(diff.code == 0);
  CHECK(diff.out == "bit-identical\n");
}

TEST_CASE("eval gives what training measured, on any number of ranks") {
  TemporaryDirectory directory;
  const std::string run_dir = directory / "run";
  REQUIRE(call_on(2, digits(run_dir, 1)).code == 0);
  const json summary = read_json(run_dir + "/summary.json");
  for (int ranks : {1, 3}) {
    const Finished finished =
        call_on(ranks, {"eval", source_path("configs/digits.toml"), "--set", "threads=1",
                        "--weights", run_dir + "/checkpoints/step_0000000023", "--json"});
    INFO(finished.err);
    REQUIRE(finished.code == 0);
    const json metrics = json::parse(finished.out);
    CHECK(metrics == summary["test"]);
  }
}

TEST_CASE("infer writes the same predictions on any number of ranks, and never over a file") {
  TemporaryDirectory directory;
  const std::string run_dir = directory / "run";
  REQUIRE(call_on(2, digits(run_dir, 1)).code == 0);
  const std::string weights = run_dir + "/checkpoints/step_0000000023";
  const auto infer = [&](int ranks, const std::string& output,
                         const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"infer",     source_path("configs/digits.toml"),
                                      "--set",     "threads=1",
                                      "--weights", weights,
                                      "--input",   source_path("data/digits.h5"),
                                      "--output",  directory / output,
                                      "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return call_on(ranks, words);
  };
  for (int ranks : {1, 2, 3}) {
    CAPTURE(ranks);
    const Finished finished = infer(ranks, std::to_string(ranks) + ".h5");
    INFO(finished.err);
    REQUIRE(finished.code == 0);
    const json found = json::parse(finished.out);
    CHECK(found["samples"] == 360);
    CHECK(found["latency_s"]["p50"].get<double>() <= found["latency_s"]["p99"].get<double>());
    CHECK(read_text(directory / (std::to_string(ranks) + ".h5")) == read_text(directory / "1.h5"));
  }
  // A pass of all samples has other convolutions, and the same predictions but for rounding.
  REQUIRE(infer(1, "whole.h5", {"--set", "batch.evaluate=360"}).code == 0);

  const auto rows = [&](const std::string& file, const std::string& dataset) {
    const annulus::Hdf5Source source(file, dataset);
    std::vector<std::byte> bytes(static_cast<std::size_t>(source.rows()) * source.row_bytes());
    source.read(0, source.rows(), bytes);
    return bytes;
  };
  const auto classes = rows(directory / "1.h5", "class");
  const auto labels = rows(source_path("data/digits.h5"), "test/labels");
  const std::size_t width = labels.size() / 360;
  int right = 0;
  for (std::size_t i = 0; i < 360; ++i) right += classes[4 * i] == labels[width * i] ? 1 : 0;
  const double top1 = read_json(run_dir + "/summary.json")["test"]["top1"].get<double>();
  CHECK(right / 360.0 == doctest::Approx(top1).epsilon(1e-12));
  CHECK(annulus::Hdf5Source(directory / "1.h5", "prediction").shape() == annulus::Shape{360, 10});
  CHECK(rows(directory / "whole.h5", "class") == classes);

  const Finished again = infer(2, "1.h5");
  CHECK(again.code == 4);
  CHECK(again.err.find("1.h5' exists") != std::string::npos);
  CHECK(infer(1, "none/new.h5").code == 4);
  CHECK(infer(2, "new.h5", {"--input", directory / "none.h5"}).code == 2);  // given twice
  CHECK(!std::filesystem::exists(directory / "new.h5"));
}

TEST_CASE("a run directory holds what the design says, and no two runs share one") {
  TemporaryDirectory directory;
  const std::string run_dir = directory / "run";
  REQUIRE(call_on(2, digits(run_dir, 1)).code == 0);
  CHECK(read_text(run_dir + "/config.toml").find("name = \"digits\"") != std::string::npos);
  CHECK(read_json(run_dir + "/placement.json").size() == 2);
  CHECK(read_text(run_dir + "/log/rank_0000.log").find("done after 23 updates") !=
        std::string::npos);
  CHECK(!read_text(run_dir + "/log/rank_0001.log").empty());
  for (const std::string& line : lines_of(read_text(run_dir + "/metrics.jsonl"))) {
    CHECK(json::parse(line).contains("update"));
  }
  const Finished again = call_on(2, digits(run_dir, 1));
  CHECK(again.code == 4);
  CHECK(lines_of(again.err).size() >= 1);
  CHECK(again.err.find("never overwritten") != std::string::npos);

  // The resolved config is a config: it gives the same weights.
  TemporaryDirectory other;
  const Finished rerun = call({"train", run_dir + "/config.toml", "--run-dir", other / "run"});
  INFO(rerun.err);
  REQUIRE(rerun.code == 0);
  CHECK(read_json(other / "run/summary.json")["weights_hash"] ==
        read_json(run_dir + "/summary.json")["weights_hash"]);
}

TEST_CASE("B91 eight ranks print no more than one does, and no control characters") {
  TemporaryDirectory directory;
  const Finished one = call_on(1, digits(directory / "one", 2));
  const Finished eight = call_on(8, digits(directory / "eight", 2));
  REQUIRE(one.code == 0);
  REQUIRE(eight.code == 0);
  // Lines of progress come by the clock, and eight ranks on few cores are slower.
  const auto untimed = [](const std::string& text) {
    std::int64_t count = 0;
    for (const std::string& line : lines_of(text)) {
      count += line.find("samples/s") == std::string::npos ? 1 : 0;
    }
    return count;
  };
  // Two lines more may say that the ranks share the cores, and that four of them have no shard.
  CHECK(untimed(eight.err) <= untimed(one.err) + 2);
  for (char c : eight.err + eight.out) CHECK((c == '\n' || static_cast<unsigned char>(c) >= 0x20));
}
