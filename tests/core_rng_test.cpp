// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <set>
#include <string>

#include <Random123/philox.h>
#include <doctest/doctest.h>
#include <xxhash.h>

#include "core/rng.h"

namespace annulus {

namespace {

using Block = std::array<std::uint32_t, 4>;

Block philox(const Block& counter, std::array<std::uint32_t, 2> key) {
  const r123::Philox4x32::ctr_type in = {{counter[0], counter[1], counter[2], counter[3]}};
  const auto out = r123::Philox4x32()(in, {{key[0], key[1]}});
  return {out[0], out[1], out[2], out[3]};
}

// The key of a stream: the hash of name, zero byte, use and the seed's bytes from the lowest.
std::array<std::uint32_t, 2> key_of(std::uint64_t seed, std::string name, int use) {
  name.push_back('\0');
  name += std::to_string(use);
  for (int shift = 0; shift < 64; shift += 8) name.push_back(static_cast<char>(seed >> shift));
  const std::uint64_t key = XXH3_64bits(name.data(), name.size());
  return {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
}

}  // namespace

TEST_CASE("the generator gives Random123's published answers") {
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr std::uint32_t ones = 0xffffffff;
  CHECK(philox({ones, ones, ones, ones}, {ones, ones}) ==
        Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("a block is Philox of its counter under the stream's key") {
  const RandomStream stream(7, RandomUse::dropout, "stage1.0.conv2");
  const auto key = key_of(7, "stage1.0.conv2", 2);
  CHECK(stream.block(0, 0, 0) == philox({0, 0, 0, 0}, key));
  CHECK(stream.block(5, 6, 7) == philox({5, 6, 7, 0}, key));
  // Sample and iteration have 48 bits: the upper halves share a word.
  CHECK(stream.block(0xffffffff, 0x123456789abc, 0xfedcba987654) ==
        philox({0xffffffff, 0x56789abc, 0xba987654, 0xfedc1234}, key));
}

TEST_CASE("what a seed means never changes") {
  const RandomStream stream(1, RandomUse::initialize, "conv1/weight");
  CHECK(stream.block(0, 0, 0) == Block{0x85b6d848, 0xcd1cd341, 0xddce8bc6, 0x0d962ee3});
  CHECK(stream.bits(6, 3, 2) == 0xf729f89b);
  CHECK(stream.uniform(0, 0, 0) == 8763096.0F / 16777216.0F);
  // sqrt(-2 log(1 - u0)) times cosine and sine of 2 pi u1, for the first two words
  CHECK(stream.normal(0, 0, 0) == doctest::Approx(0.384493332).epsilon(1e-6));
  CHECK(stream.normal(1, 0, 0) == doctest::Approx(-1.153168876).epsilon(1e-6));
}

TEST_CASE("an element's numbers come from its block") {
  const RandomStream stream(3, RandomUse::synthetic, "x");
  for (std::uint64_t element = 0; element < 12; ++element) {
    const Block block = stream.block(static_cast<std::uint32_t>(element / 4), 9, 4);
    CHECK(stream.bits(element, 9, 4) == block[element % 4]);
    CHECK(stream.uniform(element, 9, 4) ==
          static_cast<float>(block[element % 4] >> 8) / 16777216.0F);
  }
  CHECK(to_unit(0) == 0.0F);
  CHECK(to_unit(0xffffffff) == 16777215.0F / 16777216.0F);
  CHECK(to_unit(0x80000000) == 0.5F);
}

TEST_CASE("seed, use, name, sample, iteration and element all count") {
  const auto first = [](std::uint64_t seed, RandomUse use, const char* name, std::uint64_t element,
                        std::uint64_t sample, std::uint64_t iteration) {
    return RandomStream(seed, use, name).bits(element, sample, iteration);
  };
  const std::set<std::uint32_t> different = {first(1, RandomUse::crop, "a", 0, 0, 0),
                                             first(2, RandomUse::crop, "a", 0, 0, 0),
                                             first(1, RandomUse::flip, "a", 0, 0, 0),
                                             first(1, RandomUse::crop, "b", 0, 0, 0),
                                             first(1, RandomUse::crop, "", 0, 0, 0),
                                             first(1, RandomUse::crop, "a", 1, 0, 0),
                                             first(1, RandomUse::crop, "a", 4, 0, 0),
                                             first(1, RandomUse::crop, "a", 0, 1, 0),
                                             first(1, RandomUse::crop, "a", 0, 0, 1),
                                             first(1ULL << 32, RandomUse::crop, "a", 0, 0, 0),
                                             first(1, RandomUse::crop, "a", 0, 1LL << 32, 0),
                                             first(1, RandomUse::crop, "a", 0, 0, 1LL << 32)};
  CHECK(different.size() == 12);
}

TEST_CASE("neighbouring seeds, uses and short names share no stream") {
  std::set<std::array<std::uint32_t, 4>> blocks;
  std::size_t streams = 0;
  for (std::uint64_t seed = 0; seed < 64; ++seed) {
    for (int use = 1; use <= 6; ++use) {
      for (const char* name : {"", "a", "b", "ab", "fc1", "conv", "conv1/bias"}) {
        blocks.insert(RandomStream(seed, static_cast<RandomUse>(use), name).block(0, 0, 0));
        ++streams;
      }
    }
  }
  CHECK(blocks.size() == streams);
}

TEST_CASE("uniform numbers have the moments of the uniform distribution") {
  const RandomStream stream(11, RandomUse::initialize, "w");
  constexpr int count = 1 << 18;
  double sum = 0;
  double squares = 0;
  double lagged = 0;
  float before = 0.5F;
  for (int i = 0; i < count; ++i) {
    const float u = stream.uniform(static_cast<std::uint64_t>(i), 0, 0);
    REQUIRE(u >= 0.0F);
    REQUIRE(u < 1.0F);
    sum += u - 0.5;
    squares += (u - 0.5) * (u - 0.5);
    lagged += (u - 0.5) * (before - 0.5);
    before = u;
  }
  // Five standard deviations of each estimate.
  const double root = std::sqrt(static_cast<double>(count));
  CHECK(std::abs(sum / count) < 5 * 0.288675 / root);
  CHECK(std::abs(squares / count - 1.0 / 12) < 5 * 0.0745356 / root);
  CHECK(std::abs(lagged / count) < 5 * (1.0 / 12) / root);
}

TEST_CASE("normal numbers have the moments of the standard normal distribution") {
  const RandomStream stream(12, RandomUse::initialize, "w");
  constexpr int count = 1 << 18;
  std::array<double, 5> moments{};
  double pairs = 0;
  double before = 0;
  for (int i = 0; i < count; ++i) {
    const double z = stream.normal(static_cast<std::uint64_t>(i), 0, 0);
    REQUIRE(std::isfinite(z));
    double power = 1;
    for (double& moment : moments) {
      moment += power / count;
      power *= z;
    }
    if (i % 2 == 1) pairs += z * before * 2 / count;
    before = z;
  }
  const double root = std::sqrt(static_cast<double>(count));
  CHECK(std::abs(moments[1]) < 5 * 1 / root);
  CHECK(std::abs(moments[2] - 1) < 5 * std::sqrt(2.0) / root);
  CHECK(std::abs(moments[3]) < 5 * std::sqrt(15.0) / root);
  CHECK(std::abs(moments[4] - 3) < 5 * std::sqrt(96.0) / root);
  CHECK(std::abs(pairs) < 5 / std::sqrt(count / 2.0));
}

}  // namespace annulus
