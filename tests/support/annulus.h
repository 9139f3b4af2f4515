// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "support/process.h"

namespace annulus::testing {

// The program as a user calls it; ANNULUS_BINARY and ANNULUS_SOURCE are set by CMake.
Finished call(const std::vector<std::string>& words);
// Under mpirun with `ranks` ranks.
Finished call_on(int ranks, const std::vector<std::string>& words,
                 const std::map<std::string, std::string>& environment = {});

// Under mpirun with one rank for each of `ranks`, all with words of their own: the program, which
// may be any, and its arguments.
Finished call_each(const std::vector<std::vector<std::string>>& ranks);

// A file of the tree.
std::string source_path(const std::string& relative);
nlohmann::json read_json(const std::string& path);

}  // namespace annulus::testing
