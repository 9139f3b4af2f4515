// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "core/value.h"

namespace annulus {

// Reads a TOML file with its includes and applies `sets`, each "a.b=value". Every value keeps the
// place where it stands; the place of a `--set` is its own text, with paths relative to the working
// directory.
//
// `include = "file"` or a list of files at the top level or in a table merges the tables of those
// files under the table's own keys, which win; paths are relative to the including file. A value
// after `=` in a set is TOML where it reads as such, else a string. Accepts LF and CRLF, a UTF-8
// byte order mark, no final newline. Error (usage) with file:line:column: not readable, not UTF-8,
// a syntax error (alone), an include that includes itself.
Value load_config(const std::string& path, std::span<const std::string> sets);

// The same from text, for tests; `name` stands for the file in messages and is the base of its
// paths.
Value parse_config(const std::string& text, const std::string& name);

// Replaces the uses of blocks in `model.layers` by their layers, with parameters filled in and
// repetitions written out, and removes `model.blocks` (docs/config.md, "Blocks"). Adds to
// `problems`.
void expand_blocks(Value& config, Problems& problems);

// As TOML text that reads back as the same values.
std::string to_toml(const Value& table);

}  // namespace annulus
