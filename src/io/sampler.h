// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/rng.h"

namespace annulus {

// A permutation of 0 .. size-1 for each epoch, as a function of (seed, epoch), without a table: a
// Feistel network of Philox rounds over the next power of four, walked until it lands in range
// (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002,
// doi:10.1007/3-540-45760-7_9).
class Sampler {
 public:
  // Without `shuffle` it is the identity. 1 <= size <= 2^62.
  Sampler(std::int64_t size, bool shuffle, std::uint64_t seed);

  // The sample at `position` of epoch `epoch`.
  std::int64_t sample(std::int64_t epoch, std::int64_t position) const;

 private:
  // One pass of the network over [0, 4^half_bits_).
  std::uint64_t permute(std::uint64_t value, std::uint64_t epoch) const;

  std::int64_t size_;
  bool shuffle_;
  RandomStream stream_;
  int half_bits_;
};

}  // namespace annulus
