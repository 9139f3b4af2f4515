// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/state.h"
#include "io/checkpoint.h"

namespace annulus::test {

inline CheckpointMeta meta_of(std::int64_t step) {
  return {step, "name = \"ü\"\n", "fingerprint", "annulus 0"};
}

inline std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// A little of everything that a checkpoint can hold, different for each seed.
struct SmallState {
  explicit SmallState(int seed)
      : weight{0, 0.5F, -1, 1, 1.5F * static_cast<float>(seed), 3.25F},
        mean{0.1, 1e-300 * seed},
        counts{seed, 1LL << 40, -3},
        bytes{static_cast<std::uint8_t>(seed), 255},
        update(9007199254740992 + seed),
        scale(0.1 * seed),
        kind(seed == 1 ? "sgd" : "adamw") {}

  NamedState state() {
    NamedState state;
    state.add("conv1/weight", TensorView(weight.data(), Shape{2, 3}, DType::f32));
    state.add("conv1/running_mean", TensorView(std::span<double>(mean)));
    state.add("optimizer/counts", TensorView(std::span<std::int64_t>(counts)));
    state.add("mask", TensorView(std::span<std::uint8_t>(bytes)));
    state.add("update", &update);
    state.add("scale", &scale);
    state.add("kind", &kind);
    return state;
  }
  friend bool operator==(const SmallState&, const SmallState&) = default;

  std::vector<float> weight;
  std::vector<double> mean;
  std::vector<std::int64_t> counts;
  std::vector<std::uint8_t> bytes;
  std::int64_t update;
  double scale;
  std::string kind;
};

}  // namespace annulus::test
