// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace annulus {

// What the command line says, one struct a command.

struct ConfigOptions {
  std::string config;             // path of the TOML file
  std::vector<std::string> sets;  // "a.b=value"
};

struct TrainOptions : ConfigOptions {
  std::string run_dir;
  bool resume = false;
  std::string resume_from;
};

struct EvalOptions : ConfigOptions {
  std::string weights;
  bool json = false;
};

struct InferOptions : ConfigOptions {
  std::string weights;
  std::string input;
  std::string output;
  bool json = false;
};

struct CheckOptions : ConfigOptions {
  std::int64_t ranks = 1;
  bool json = false;
};

struct BenchStepOptions : ConfigOptions {
  std::int64_t steps = 20;
  std::int64_t warmup = 3;
  bool json = false;
};

struct BenchDataOptions : ConfigOptions {
  double seconds = 1;
  bool json = false;
};

struct AllreduceOptions {
  std::string bytes = "1K,4K,16K,64K,256K,1M,4M,16M,64M,128M";
  std::int64_t steps = 20;
  std::int64_t warmup = 5;
  bool json = false;
};

struct DataImportOptions {
  std::string kind;
  std::string source;
  std::string destination;
};

struct DataFileOptions {
  std::string file;
  bool json = false;
};

struct DataSynthOptions {
  std::string spec;
  std::string destination;
};

struct CheckpointOptions {
  std::string path;
  std::string other;  // of diff
  bool json = false;
};

}  // namespace annulus
