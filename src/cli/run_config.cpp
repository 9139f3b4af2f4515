// SPDX-License-Identifier: Apache-2.0
#include "cli/run_config.h"

#include "cli/same_config.h"
#include "comm/agree.h"
#include "config/config.h"
#include "core/error.h"
#include "train/run_plan.h"

namespace annulus {
namespace {

constexpr char separator = '\x1e';  // between the texts of several configs; no TOML holds it

}  // namespace

std::string RunConfig::text() const {
  return to_toml(value);
}

std::vector<Value> read_configs(const ConfigOptions& options) {
  std::vector<Value> values = expand_sweep(load_config(options.config, options.sets));
  RunSpec spec;
  for (Value& value : values) {
    let_sets_win(value);
    describe(spec).resolve_paths(value);
  }
  return values;
}

RunConfig check_config(Value value, std::vector<std::string>& warnings) {
  RunConfig config;
  Problems problems;
  Value expanded = value;
  expand_blocks(expanded, problems);
  read_run_spec(expanded, config.spec, problems);
  config.graph = std::make_unique<Graph>(std::move(config.spec.model), problems);
  if (problems.empty()) check_inputs(config.spec, *config.graph, value, problems);
  problems.throw_if_any();
  config.value = std::move(value);
  warnings.insert(warnings.end(), problems.warnings().begin(), problems.warnings().end());
  return config;
}

std::vector<RunConfig> load_configs(Communicator& comm, const ConfigOptions& options, Log& log) {
  require_same_config(comm, options);
  std::vector<std::string> warnings;
  std::vector<RunConfig> configs;
  std::string all = agree_on_text(comm, [&] {
    std::string texts;
    for (Value& value : read_configs(options)) {
      configs.push_back(check_config(std::move(value), warnings));
      texts += configs.back().text() + separator;
    }
    return texts;
  });
  for (const std::string& warning : warnings) log.warning("{}", warning);
  if (comm.rank() == 0) return configs;  // with the places in the user's own file

  // The other ranks work with what was sent, so that none reads another state of the file.
  for (std::size_t end = all.find(separator); end != std::string::npos; end = all.find(separator)) {
    configs.push_back(check_config(parse_config(all.substr(0, end), options.config), warnings));
    all.erase(0, end + 1);
  }
  return configs;
}

RunConfig load_one_config(Communicator& comm, const ConfigOptions& options, Log& log) {
  std::vector<RunConfig> configs = load_configs(comm, options, log);
  if (configs.size() != 1) {
    throw Error(
        ErrorKind::usage,
        fmt::format("{}: [sweep] has {} experiments and this command takes one; choose it with "
                    "--set",
                    options.config, configs.size()))
        .agreed(0, comm.hosts()[0]);
  }
  return std::move(configs.front());
}

void require_test_data(const RunConfig& config, const Communicator& comm) {
  if (config.spec.data.has_test) return;
  throw Error(ErrorKind::usage, "the config has no [data.test] to evaluate")
      .agreed(0, comm.hosts()[0]);
}

}  // namespace annulus
