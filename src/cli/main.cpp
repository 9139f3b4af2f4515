// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line.h"
#include "cli/standard_streams.h"

int main(int argc, char** argv) {
  annulus::hold_standard_streams();
  return annulus::check_standard_output(annulus::run_command_line(argc, argv));
}
