// SPDX-License-Identifier: Apache-2.0
#include "support/annulus.h"

#include <cstdlib>
#include <utility>

namespace annulus::testing {
namespace {

std::string variable(const char* name) {
  const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): never set here
  return text == nullptr ? "" : text;
}

Finished run_launcher(Command command, const std::map<std::string, std::string>& environment) {
  command.environment = environment;
  // As root and with more ranks than cores, whoever calls the tests.
  for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
                           "OMPI_MCA_rmaps_base_oversubscribe"}) {
    command.environment.emplace(name, "1");
  }
  // Open MPI keeps memory to the end, and is not built for the sanitizers.
  command.environment["ASAN_OPTIONS"] = variable("ASAN_OPTIONS") + ":detect_leaks=0";
  command.environment["TSAN_OPTIONS"] =
      variable("TSAN_OPTIONS") + ":ignore_noninstrumented_modules=1";
  return run(command);
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
  return run_launcher(std::move(command), environment);
}

Finished call_each(const std::vector<std::vector<std::string>>& ranks) {
  Command command{{"mpirun", "--oversubscribe"}};
  for (const std::vector<std::string>& words : ranks) {
    if (&words != &ranks.front()) command.words.emplace_back(":");
    for (const char* word : {"-n", "1"}) command.words.emplace_back(word);
    command.words.insert(command.words.end(), words.begin(), words.end());
  }
  return run_launcher(std::move(command), {});
}

std::string source_path(const std::string& relative) {
  return std::string(ANNULUS_SOURCE) + '/' + relative;
}

nlohmann::json read_json(const std::string& path) {
  return nlohmann::json::parse(read_text(path));
}

}  // namespace annulus::testing
