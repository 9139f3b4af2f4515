// SPDX-License-Identifier: Apache-2.0
#include "config/config.h"

#include "config/include.h"
#include "config/overrides.h"
#include "config/toml_reader.h"

namespace annulus {

Value load_config(const std::string& path, std::span<const std::string> sets) {
  return parse_config(read_text_file(path, {}), path, sets);
}

Value parse_config(const std::string& text, const std::string& name,
                   std::span<const std::string> sets) {
  Value config = read_toml(text, name);
  std::vector<std::string> files{name};
  resolve_includes(config, files);
  Problems problems;
  for (const std::string& set : sets) apply_override(config, set, problems);
  problems.throw_if_any();
  resolve_includes(config, files);  // those that a set has added
  return config;
}

}  // namespace annulus
