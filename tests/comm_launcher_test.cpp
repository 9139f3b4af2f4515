// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <string>

#include <doctest/doctest.h>

#include "comm/mpi/launcher.h"
#include "core/error.h"

namespace annulus {
namespace {

using Variables = std::map<std::string, std::string>;

Environment with(const Variables& variables) {
  return [&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

Launch detect(const Variables& variables) {
  return detect_launch(with(variables));
}

TEST_CASE("a plain process is no rank, and neither is a Slurm batch script") {
  CHECK_FALSE(detect({}).present);
  CHECK_FALSE(detect({{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}}).present);
  CHECK_FALSE(detect({{"SLURM_STEP_ID", "4"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}})
                  .present);
  CHECK_FALSE(detect({{"PMI_SIZE", "4"}}).present);
  CHECK_FALSE(detect({{"OMPI_COMM_WORLD_SIZE", "many"}}).present);
}

TEST_CASE("mpirun, mpiexec and srun tell how many ranks they start") {
  CHECK(detect({{"OMPI_COMM_WORLD_SIZE", "1"}}).present);
  const Launch open_mpi = detect({{"OMPI_COMM_WORLD_SIZE", "4"},
                                  {"SLURM_STEP_NUM_TASKS", "2"},
                                  {"SLURM_STEP_ID", "0"},
                                  {"SLURM_PROCID", "0"}});
  CHECK(open_mpi.ranks == 4);
  CHECK(open_mpi.variable == "OMPI_COMM_WORLD_SIZE");
  CHECK(detect({{"PMI_SIZE", "3"}, {"PMI_RANK", "0"}}).ranks == 3);
  const Launch srun = detect({{"SLURM_STEP_NUM_TASKS", "16"},
                              {"SLURM_STEP_ID", "0"},
                              {"SLURM_PROCID", "3"},
                              {"PMIX_RANK", "3"}});
  CHECK(srun.ranks == 16);
  CHECK(srun.variable == "SLURM_STEP_NUM_TASKS");
  CHECK(detect({{"PMIX_RANK", "0"}}).present);
  CHECK(detect({{"PMIX_RANK", "0"}}).ranks == 0);
}

TEST_CASE("ANNULUS_NODES is a number of nodes") {
  const auto nodes = [](const std::string& text) {
    const Variables variables{{"ANNULUS_NODES", text}};
    return pretended_nodes(with(variables));
  };
  CHECK(pretended_nodes(with({})) == 1);
  CHECK(nodes("") == 1);
  CHECK(nodes("2") == 2);
  for (const char* wrong : {"0", "-1", "two", "2x", "99999999999"}) {
    CHECK_THROWS_WITH_AS(nodes(wrong), doctest::Contains("ANNULUS_NODES"), Error);
  }
}

}  // namespace
}  // namespace annulus
