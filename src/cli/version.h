// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace annulus {

// "annulus 0.1.0 (build id)" and the libraries that it runs with, a line each.
std::string version_text();
// Its first line.
std::string program_line();
// All of it on one line, for checkpoints and summaries.
std::string versions_line();

}  // namespace annulus
