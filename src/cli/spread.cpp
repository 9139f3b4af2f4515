// SPDX-License-Identifier: Apache-2.0
#include "cli/spread.h"

#include <algorithm>
#include <numeric>

namespace annulus {

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t count = values.size();
  const std::size_t middle = count / 2;
  const double median = count % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  const std::size_t rank = (99 * count + 99) / 100;  // rounded up, from 1
  return {sum / static_cast<double>(count), median, values[rank - 1], values.front(),
          values.back()};
}

JsonObject to_json(const Spread& spread) {
  JsonObject json;
  json.set("median", spread.median)
      .set("min", spread.min)
      .set("max", spread.max)
      .set("mean", spread.mean);
  return json;
}

}  // namespace annulus
