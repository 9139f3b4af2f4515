// SPDX-License-Identifier: Apache-2.0
#include "layers/cpu_isa.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <string_view>

#include <oneapi/dnnl/dnnl.hpp>

#include "core/error.h"

namespace annulus {
namespace {

struct Level {
  const char* name;
  dnnl::cpu_isa isa;
};

constexpr std::array<Level, 4> levels = {{{"sse41", dnnl::cpu_isa::sse41},
                                          {"avx", dnnl::cpu_isa::avx},
                                          {"avx2", dnnl::cpu_isa::avx2},
                                          {"avx512_core", dnnl::cpu_isa::avx512_core}}};

constexpr int highest = static_cast<int>(levels.size()) - 1;

// oneDNN itself cannot be asked: its answer settles the set, and it could not be limited any more.
int processor_level() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
    return highest;
  }
  if (__builtin_cpu_supports("avx2")) return 2;
  if (__builtin_cpu_supports("avx")) return 1;
#endif
  return 0;
}

// The level that a value of ONEDNN_MAX_CPU_ISA allows; its other names are extensions of these.
int allowed_level(std::string value) {
  std::transform(value.begin(), value.end(), value.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (value == "sse41") return 0;
  if (value == "avx") return 1;
  if (value.starts_with("avx2")) return 2;
  return highest;
}

int environment_level() {
  for (const char* name : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it
    if (value != nullptr) return allowed_level(value);
  }
  return highest;
}

}  // namespace

std::string cpu_isa() {
  return cpu_isa_name(std::min(processor_level(), environment_level()));
}

std::string effective_cpu_isa() {
  // oneDNN's values are sets of bits, a set for each extension that contains those it builds on.
  const auto bits = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const char* found = "none";
  for (const Level& level : levels) {
    const auto needed = static_cast<unsigned>(level.isa);
    if ((bits & needed) == needed) found = level.name;
  }
  return found;
}

int cpu_isa_level(const std::string& isa) {
  const auto* found = std::find_if(levels.begin(), levels.end(), [&](const Level& level) {
    return std::string_view(level.name) == isa;
  });
  require(found != levels.end(), ErrorKind::usage,
          "'{}' is no instruction set: use sse41, avx, avx2 or avx512_core", isa);
  return static_cast<int>(found - levels.begin());
}

const char* cpu_isa_name(int level) {
  return levels.at(static_cast<std::size_t>(level)).name;
}

void limit_cpu_isa(const std::string& isa) {
  const int level = cpu_isa_level(isa);
  const std::string before = cpu_isa();
  if (before == isa) return;
  require(level < cpu_isa_level(before), ErrorKind::resource,
          "this processor has {}, which is less than the {} that results were begun with", before,
          isa);
  dnnl::set_max_cpu_isa(levels[static_cast<std::size_t>(level)].isa);
  const std::string found = effective_cpu_isa();
  require(found == isa, ErrorKind::bug,
          "the instruction set can be limited once, before the first operation: wanted {}, is {}",
          isa, found);
}

std::string onednn_version() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
}

}  // namespace annulus
