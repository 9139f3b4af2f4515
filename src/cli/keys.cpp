// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "cli/commands.h"
#include "train/run_spec.h"

namespace annulus {
namespace {

void print(const DocumentedKey& key) {
  const std::string type = key.required ? key.type + ", required" : key.type;
  std::puts(fmt::format("{}\t{}\t{}\t{}", key.path, type, key.default_text, key.doc).c_str());
}

}  // namespace

int run_keys() {
  for (const DocumentedKey& key : all_keys()) print(key);
  return 0;
}

}  // namespace annulus
