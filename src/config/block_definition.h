// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/value.h"

namespace annulus {

// The keys of a layer or of a use of a block that name other layers.
inline constexpr std::string_view reference_keys[] = {"from", "add", "concat", "share"};

// One table of [model.blocks]. It refers to the config's values, which must outlive it.
struct BlockDefinition {
  std::string name;
  Location where;
  Value::Table defaults;              // parameters that may be left out, in the order of the file
  std::vector<std::string> required;  // parameters that may not
  const Value::Array* layers = nullptr;

  bool has_parameter(std::string_view key) const;
  std::vector<std::string> parameter_names() const;
};

// Reads [model.blocks]. Adds to `problems`: unknown keys, parameters whose names are taken by the
// grammar, lists without layers, blocks that contain themselves. A block with problems is in the
// result, without those parts, unless it contains itself.
std::vector<BlockDefinition> read_blocks(const Value& blocks, Problems& problems);

// The block of that name; null, with a problem at the place of the name, where there is none.
const BlockDefinition* find_block(std::span<const BlockDefinition> blocks, const Value& name,
                                  Problems& problems);

}  // namespace annulus
