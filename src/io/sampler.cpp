// SPDX-License-Identifier: Apache-2.0
#include "io/sampler.h"

#include <algorithm>
#include <bit>

#include "core/error.h"

namespace annulus {
namespace {

constexpr std::uint32_t rounds = 8;

}  // namespace

Sampler::Sampler(std::int64_t size, bool shuffle, std::uint64_t seed)
    : size_(size), shuffle_(shuffle), stream_(seed, RandomUse::shuffle, "") {
  require(size >= 1 && size <= std::int64_t{1} << 62, ErrorKind::bug, "a sampler of {} samples",
          size);
  const int bits = std::bit_width(static_cast<std::uint64_t>(size - 1));
  half_bits_ = std::max(1, (bits + 1) / 2);
}

std::int64_t Sampler::sample(std::int64_t epoch, std::int64_t position) const {
  require(position >= 0 && position < size_, ErrorKind::bug, "position {} of {} samples", position,
          size_);
  if (!shuffle_) return position;
  // The network permutes the whole power of four; from a number in range its cycle comes back into
  // range, after four steps in the mean at most.
  auto value = static_cast<std::uint64_t>(position);
  do {
    value = permute(value, static_cast<std::uint64_t>(epoch));
  } while (value >= static_cast<std::uint64_t>(size_));
  return static_cast<std::int64_t>(value);
}

std::uint64_t Sampler::permute(std::uint64_t value, std::uint64_t epoch) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_;
  std::uint64_t right = value & mask;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    const std::uint64_t next = left ^ (stream_.block(round, right, epoch)[0] & mask);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

}  // namespace annulus
