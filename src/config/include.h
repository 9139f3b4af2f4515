// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/value.h"

namespace annulus {

// The text of a file. Error (usage) at `where` with the system's reason.
std::string read_text_file(const std::string& path, const Location& where);

// Replaces every key `include` in the tables of `value` by what the named files hold, as
// load_config says. `files` are the files being read, outermost first: one that comes again is an
// error (usage) at its `include`.
void resolve_includes(Value& value, std::vector<std::string>& files);

}  // namespace annulus
