// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/launcher.h"

#include <charconv>
#include <optional>
#include <string_view>

#include "core/error.h"

namespace annulus {
namespace {

// A whole decimal number of at least 1.
std::optional<int> count_in(const char* text) {
  if (text == nullptr) return std::nullopt;
  const std::string_view digits(text);
  int count = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (error != std::errc() || end != digits.data() + digits.size() || count < 1) {
    return std::nullopt;
  }
  return count;
}

}  // namespace

Launch detect_launch(const Environment& environment) {
  const auto from = [&](const char* variable) -> std::optional<Launch> {
    const auto ranks = count_in(environment(variable));
    if (!ranks) return std::nullopt;
    return Launch{true, *ranks, variable};
  };
  if (const auto launch = from("OMPI_COMM_WORLD_SIZE")) return *launch;
  if (environment("PMI_RANK") != nullptr) {
    if (const auto launch = from("PMI_SIZE")) return *launch;
  }
  const bool in_step = environment("SLURM_STEP_ID") != nullptr;
  if (in_step && environment("SLURM_PROCID") != nullptr) {
    const auto launch = from("SLURM_STEP_NUM_TASKS");
    if (launch && launch->ranks > 1) return *launch;
  }
  if (environment("PMIX_RANK") != nullptr) return {true, 0, "PMIX_RANK"};
  return {};
}

int pretended_nodes(const Environment& environment) {
  const char* text = environment("ANNULUS_NODES");
  if (text == nullptr || *text == '\0') return 1;
  const auto nodes = count_in(text);
  if (!nodes) {
    throw Error(ErrorKind::usage, "ANNULUS_NODES").values("a number of nodes from 1 on", text);
  }
  return *nodes;
}

}  // namespace annulus
