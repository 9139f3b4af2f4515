// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/value.h"

namespace annulus {

// Reads a TOML document as it is, without includes. `file` names it in places and messages. Tables
// keep the order of the text. Error (usage) at the place of a syntax error, of a date or a time,
// which no key takes, or of the first byte that is not UTF-8.
Value read_toml(std::string_view text, const std::string& file);

// A single value such as `[1, 2]`; nothing where the text is not one. Places mean nothing.
std::optional<Value> read_toml_value(const std::string& text);

}  // namespace annulus
