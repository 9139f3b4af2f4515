// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace annulus {

// What random numbers are drawn for; part of the key, so that two uses never share numbers. The
// values are part of what a seed means: never change or reuse one.
enum class RandomUse : std::uint32_t {
  initialize = 1,
  dropout = 2,
  shuffle = 3,
  crop = 4,
  flip = 5,
  synthetic = 6,
};

// Counter-based random numbers: Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC11, doi:10.1145/2063384.2063405), by Random123. A number is a pure function of (seed,
// use, name, sample, iteration, element): never of rank, thread, or what was drawn before. Both
// devices compute the same ones.
class RandomStream {
 public:
  // `name` is the layer's or tensor's name. `sample` and `iteration` use their low 48 bits.
  RandomStream(std::uint64_t seed, RandomUse use, std::string_view name);

  // Four 32-bit numbers, for elements 4 * block to 4 * block + 3.
  std::array<std::uint32_t, 4> block(std::uint32_t block, std::uint64_t sample,
                                     std::uint64_t iteration) const;

  // The numbers of a single element.
  std::uint32_t bits(std::uint64_t element, std::uint64_t sample, std::uint64_t iteration) const;
  // Uniform in [0, 1), with 24 random bits.
  float uniform(std::uint64_t element, std::uint64_t sample, std::uint64_t iteration) const;
  // Standard normal, by Box and Muller from the two halves of a block.
  float normal(std::uint64_t element, std::uint64_t sample, std::uint64_t iteration) const;

 private:
  std::array<std::uint32_t, 2> key_;
};

// 32 random bits to a float in [0, 1).
inline float to_unit(std::uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24F;
}

}  // namespace annulus
