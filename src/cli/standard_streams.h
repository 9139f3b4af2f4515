// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace annulus {

// Takes the places of standard streams that are closed, so that no file of ours is opened in one
// and written by mistake. What is written to such a standard output fails. Before anything else.
void hold_standard_streams();

// The exit code of the program: `code`, or 4 with a line on standard error where that is 0 but
// standard output did not take all that was printed. After everything else.
int check_standard_output(int code);

}  // namespace annulus
