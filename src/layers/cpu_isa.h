// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace annulus {

// The instruction sets that results of the CPU backend may differ by, weakest first: "sse41",
// "avx", "avx2", "avx512_core". Extensions for integers and bf16 do not touch f32 and are not told
// apart.

// The set that this machine offers: its processor's, or less where ONEDNN_MAX_CPU_ISA says so.
std::string cpu_isa();

// The set that operations use, after limit_cpu_isa. From the first call on it cannot be limited.
std::string effective_cpu_isa();

// Place of a name in that order, from 0; Error (usage) with the known names where it is not one.
// The lowest of all hosts is what a job agrees on.
int cpu_isa_level(const std::string& isa);
const char* cpu_isa_name(int level);

// From now on operations use at most `isa`. Call it before the first operation is made; Error (bug)
// after that, Error (resource) where this machine has less.
void limit_cpu_isa(const std::string& isa);

// What this processor lacks of what the build needs ("avx2"); null where it has all. main calls it
// first: its own code uses nothing newer than the oldest 64-bit processors.
const char* missing_instructions();

// The version of oneDNN that runs: "2.6.3".
std::string onednn_version();

}  // namespace annulus
