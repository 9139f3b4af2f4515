// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/value.h"

namespace annulus {

// The parts of a dotted key, "a.b" or "a.\"x.y\".0"; nothing where a part is empty, unquoted with
// characters that a bare key may not have, or badly quoted.
std::optional<std::vector<std::string>> split_key(std::string_view key);

// The inverse: parts joined by dots, in quotes where they need them.
std::string join_key(const std::vector<std::string>& parts);

// Sets the value at a path through tables, which are made where they are missing, and elements of
// arrays, by index from 0. Adds to `problems`, at the value's place, where the path goes through
// something else; `value` is then not set.
void set_at(Value& root, const std::vector<std::string>& path, Value value, Problems& problems);

// Applies one "a.b=value" as load_config says.
void apply_override(Value& config, const std::string& text, Problems& problems);

}  // namespace annulus
