// SPDX-License-Identifier: Apache-2.0
// Limits the instruction set in a process of its own, since that can be done once: prints what the
// machine offers and what operations then use.
#include <cstdio>

#include "core/error.h"
#include "layers/cpu_isa.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    const std::string offered = annulus::cpu_isa();
    annulus::limit_cpu_isa(argv[1]);
    std::printf("%s %s\n", offered.c_str(), annulus::effective_cpu_isa().c_str());
    return 0;
  } catch (const annulus::Error& error) {
    std::printf("%s\n", error.what());
    return error.exit_code();
  }
}
