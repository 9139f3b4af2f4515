// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/schema.h"

namespace annulus {

// How a parameter starts. With fan = fan_in, fan_out or their mean:
//   constant   value
//   normal     mean 0, deviation `std`
//   uniform    in [-bound, bound)
//   xavier     uniform, bound sqrt(3 / fan) with the mean fan (Glorot and Bengio, AISTATS 2010)
//   he         normal, deviation sqrt(2 / fan) (He et al., ICCV 2015, arXiv:1502.01852)
struct InitializerSpec {
  std::string kind = "he";
  double value = 0;
  double std = 0.01;
  double bound = 0.05;
  std::string fan = "in";    // in, out, average
  std::string distribution;  // normal or uniform; empty: the kind's own, as above

  static InitializerSpec constant(double value);
};

// A key whose value is a number (constant), a kind ("he"), or a table { kind = "he", fan = "out" }.
Key& initializer_key(Schema& schema, const std::string& name, InitializerSpec* spec,
                     const std::string& doc);

// Fills a parameter as a function of (seed, full name, element) alone.
void initialize(std::span<float> values, const InitializerSpec& spec, std::int64_t fan_in,
                std::int64_t fan_out, std::uint64_t seed, const std::string& name);

}  // namespace annulus
