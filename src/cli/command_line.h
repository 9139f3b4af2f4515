// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace annulus {

// Reads the command line and runs the command: the exit code of the process. Prints errors; throws
// nothing.
int run_command_line(int argc, char** argv);

}  // namespace annulus
