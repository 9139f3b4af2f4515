// SPDX-License-Identifier: Apache-2.0
#include "support/annulus.h"

#include <cstdlib>

namespace annulus::testing {

Finished call(const std::vector<std::string>& words) {
  Command command{{ANNULUS_BINARY}};
  command.words.insert(command.words.end(), words.begin(), words.end());
  return run(command);
}

Finished call_on(int ranks, const std::vector<std::string>& words,
                 const std::map<std::string, std::string>& environment) {
  Command command{{"mpirun", "--oversubscribe", "-n", std::to_string(ranks), ANNULUS_BINARY}};
  command.words.insert(command.words.end(), words.begin(), words.end());
  command.environment = environment;
  // Open MPI leaks, and unloads the plugins that it leaked from before the leaks are reported, so
  // that they cannot be suppressed by name. Leaks of our own are seen in the processes without
  // mpirun.
  const char* options =
      std::getenv("ASAN_OPTIONS");  // NOLINT(concurrency-mt-unsafe): never set here
  command.environment["ASAN_OPTIONS"] =
      std::string(options == nullptr ? "" : options) + ":detect_leaks=0";
  return run(command);
}

std::string source_path(const std::string& relative) {
  return std::string(ANNULUS_SOURCE) + '/' + relative;
}

nlohmann::json read_json(const std::string& path) {
  return nlohmann::json::parse(read_text(path));
}

}  // namespace annulus::testing
