// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/value.h"

namespace annulus {

// Reads a TOML file with its includes and applies `sets`, each "a.b=value". Every value keeps the
// place where it stands; the place of a `--set` is its own text without a line, and its paths are
// relative to the working directory.
//
// `include = "file"` or a list of files in any table merges the tables of those files under the
// table's own keys, which win (of several files the later one wins); paths are relative to the file
// that names them. In a set the value after `=` is TOML where it reads as such, else a string; its
// key may hold indices of arrays, `model.layers.0.conv=8`; tables on its way are made. Accepts LF
// and CRLF, a UTF-8 byte order mark, no final newline. Error (usage) with file:line:column: not
// readable, not UTF-8, a syntax error (alone), an include that includes itself, and all sets that
// cannot be applied.
Value load_config(const std::string& path, std::span<const std::string> sets);

// The same from text, for tests; `name` stands for the file in messages and is the base of its
// paths.
Value parse_config(const std::string& text, const std::string& name,
                   std::span<const std::string> sets = {});

// Replaces the uses of blocks in `model.layers` by their layers, with parameters filled in and
// repetitions written out, and removes `model.blocks` (docs/config.md, "Blocks"). Adds to
// `problems`; the config is then only good for finding more of them.
void expand_blocks(Value& config, Problems& problems);

// The grid of experiments that the table `sweep` spans: keys with lists of values, dotted as in
// `"optimizer.lr" = [0.1, 0.2]`. One config a point, in the order of the file with the last key
// fastest, each without `sweep` and with a name that tells it: "digits-optimizer.lr=0.1". Without
// `sweep`: the config alone. Error (usage) with all that is wrong.
std::vector<Value> expand_sweep(const Value& config);

// As TOML text that parse_config reads back as the same values; in a table, sub-tables come last.
std::string to_toml(const Value& table);

}  // namespace annulus
