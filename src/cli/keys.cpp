// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "cli/commands.h"
#include "layers/layer.h"
#include "train/run_spec.h"

namespace annulus {
namespace {

void print(const DocumentedKey& key) {
  const std::string type = key.required ? key.type + ", required" : key.type;
  std::puts(fmt::format("{}\t{}\t{}\t{}", key.path, type, key.default_text, key.doc).c_str());
}

}  // namespace

int run_check_keys() {
  RunSpec spec;
  for (const DocumentedKey& key : documented_keys(describe(spec))) print(key);
  for (const LayerKind& kind : layer_kinds()) {
    const std::unique_ptr<Layer> layer = kind.make();
    for (const DocumentedKey& key : documented_keys(layer->describe(), kind.key)) print(key);
  }
  return 0;
}

}  // namespace annulus
