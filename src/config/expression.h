// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "core/value.h"

namespace annulus {

// Whether a text uses a parameter: has a `$` with a letter or an underscore after it.
bool is_expression(std::string_view text);

// The value of an expression over the members of the table `parameters`. "$name" alone is that
// parameter, of whatever type. Else: integers, floats, true, false, 'text', parentheses; * / %;
// + -; == != < <= > >=; not; and; or, in the order of their strength. Integers stay integers; with
// a float the result is a float. `and` and `or` leave out what they do not need. The result has
// the place `where`. Error (usage) at `where` that quotes the text: a syntax error, an unknown
// parameter with the nearest known one, a wrong type, division by zero or of integers that does
// not come out even, an integer out of range.
Value evaluate(const std::string& text, const Value& parameters, const Location& where);

}  // namespace annulus
