// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "io/json.h"

namespace annulus {

// What several measurements of one thing come to.
struct Spread {
  double mean = 0;
  double median = 0;
  double p99 = 0;  // 99 % of them are at most this (nearest rank)
  double min = 0;
  double max = 0;
};

// At least one value.
Spread spread_of(std::vector<double> values);

// {"median": ..., "min": ..., "max": ..., "mean": ...}
JsonObject to_json(const Spread& spread);

}  // namespace annulus
