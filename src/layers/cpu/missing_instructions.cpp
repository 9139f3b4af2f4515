// SPDX-License-Identifier: Apache-2.0
// Built for the oldest 64-bit processors (CMakeLists.txt), so that it runs where the rest would
// not.
#include "layers/cpu_isa.h"

namespace annulus {

const char* missing_instructions() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2")) return "avx2";
  if (!__builtin_cpu_supports("fma")) return "fma";
  if (!__builtin_cpu_supports("bmi2")) return "bmi2";
#endif
  return nullptr;
}

}  // namespace annulus
