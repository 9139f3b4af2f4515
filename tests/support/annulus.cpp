// SPDX-License-Identifier: Apache-2.0
#include "support/annulus.h"

#include <cstdlib>

namespace annulus::testing {
namespace {

std::string variable(const char* name) {
  const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): never set here
  return text == nullptr ? "" : text;
}

}  // namespace

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
  // Open MPI keeps memory to the end, and is not built for the sanitizers.
  command.environment["ASAN_OPTIONS"] = variable("ASAN_OPTIONS") + ":detect_leaks=0";
  command.environment["TSAN_OPTIONS"] =
      variable("TSAN_OPTIONS") + ":ignore_noninstrumented_modules=1";
  return run(command);
}

std::string source_path(const std::string& relative) {
  return std::string(ANNULUS_SOURCE) + '/' + relative;
}

nlohmann::json read_json(const std::string& path) {
  return nlohmann::json::parse(read_text(path));
}

}  // namespace annulus::testing
