// SPDX-License-Identifier: Apache-2.0
#include "core/rng.h"

#include <cmath>
#include <numbers>
#include <string>

#include <Random123/philox.h>
#include <xxhash.h>

namespace annulus {

RandomStream::RandomStream(std::uint64_t seed, RandomUse use, std::string_view name) {
  std::string text(name);
  text.push_back('\0');
  text += std::to_string(static_cast<std::uint32_t>(use));
  // The seed is text too: as the hash's own seed it would only be combined by exclusive or with
  // short texts, so that neighbouring seeds and uses would share keys.
  for (int shift = 0; shift < 64; shift += 8) text.push_back(static_cast<char>(seed >> shift));
  const std::uint64_t key = XXH3_64bits(text.data(), text.size());
  key_ = {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
}

std::array<std::uint32_t, 4> RandomStream::block(std::uint32_t block, std::uint64_t sample,
                                                 std::uint64_t iteration) const {
  const auto high =
      static_cast<std::uint32_t>(((sample >> 32) & 0xFFFF) | (((iteration >> 32) & 0xFFFF) << 16));
  const r123::Philox4x32::ctr_type counter = {
      {block, static_cast<std::uint32_t>(sample), static_cast<std::uint32_t>(iteration), high}};
  const r123::Philox4x32::ukey_type key = {{key_[0], key_[1]}};
  const auto numbers = r123::Philox4x32()(counter, key);
  return {numbers[0], numbers[1], numbers[2], numbers[3]};
}

std::uint32_t RandomStream::bits(std::uint64_t element, std::uint64_t sample,
                                 std::uint64_t iteration) const {
  return block(static_cast<std::uint32_t>(element / 4), sample, iteration)[element % 4];
}

float RandomStream::uniform(std::uint64_t element, std::uint64_t sample,
                            std::uint64_t iteration) const {
  return to_unit(bits(element, sample, iteration));
}

float RandomStream::normal(std::uint64_t element, std::uint64_t sample,
                           std::uint64_t iteration) const {
  // A pair of uniforms gives a pair of normals: elements 2k and 2k + 1 share theirs.
  const auto numbers = block(static_cast<std::uint32_t>(element / 4), sample, iteration);
  const std::size_t pair = element % 4 / 2 * 2;
  const double radius = std::sqrt(-2.0 * std::log(1.0 - to_unit(numbers[pair])));
  const double angle = 2.0 * std::numbers::pi * to_unit(numbers[pair + 1]);
  return static_cast<float>(radius * (element % 2 == 0 ? std::cos(angle) : std::sin(angle)));
}

}  // namespace annulus
