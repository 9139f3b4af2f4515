// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace annulus {

// Whether no value is infinite or NaN.
bool all_finite(std::span<const float> values);

}  // namespace annulus
