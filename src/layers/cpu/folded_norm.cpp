// SPDX-License-Identifier: Apache-2.0
#include "layers/cpu/folded_norm.h"

#include <cmath>

#include "core/cpu/parallel.h"

namespace annulus::cpu {

FoldedNorm::FoldedNorm(const Engine& engine, const ConvWeights& weights, double epsilon)
    : engine_(engine),
      weights_(weights),
      epsilon_(epsilon),
      weight_(Buffer::host(weights.wanted.get_size())),
      bias_(Buffer::host(static_cast<std::size_t>(weights.channels) * sizeof(float))),
      plain_(plan_.add(weights.plain.get_size())),
      to_plain_(engine, weights.kept, weights.plain, plan_),
      to_wanted_(engine, weights.plain, weights.wanted, plan_) {}

void FoldedNorm::update(std::span<const float* const> parameters,
                        std::span<const float* const> running, std::int64_t version,
                        std::byte* workspace) {
  if (source_ == parameters[0] && version_ == version) return;
  auto* plain = reinterpret_cast<float*>(workspace + plain_);
  to_plain_.run(engine_, parameters[0], plain, workspace);
  fold(parameters, running, plain);
  to_wanted_.run(engine_, plain, weight_.data(), workspace);
  source_ = parameters[0];
  version_ = version;
}

void FoldedNorm::fold(std::span<const float* const> parameters,
                      std::span<const float* const> running, float* plain) {
  const float* before = weights_.bias ? parameters[1] : nullptr;
  const float* scale = parameters[parameters.size() - 2];
  const float* shift = parameters[parameters.size() - 1];
  const std::int64_t taps =
      static_cast<std::int64_t>(weights_.plain.get_size() / sizeof(float)) / weights_.channels;
  parallel_for(weights_.channels, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin; c < end; ++c) {
      const double factor = scale[c] / std::sqrt(running[1][c] + epsilon_);
      const double bias = before == nullptr ? 0 : before[c];
      bias_.as<float>()[c] = static_cast<float>((bias - running[0][c]) * factor + shift[c]);
      for (std::int64_t i = c * taps; i < (c + 1) * taps; ++i) {
        plain[i] = static_cast<float>(plain[i] * factor);
      }
    }
  });
}

std::shared_ptr<FoldedNorm> FoldedCache::get(const ConvWeights& weights, double epsilon) {
  std::erase_if(folded_, [](const auto& entry) { return entry.expired(); });
  for (const auto& entry : folded_) {
    std::shared_ptr<FoldedNorm> folded = entry.lock();
    const ConvWeights& w = folded->weights();
    if (w.parameter == weights.parameter && w.wanted == weights.wanted) return folded;
  }
  auto folded = std::make_shared<FoldedNorm>(engine_, weights, epsilon);
  folded_.push_back(folded);
  return folded;
}

std::size_t FoldedCache::bytes() const {
  std::size_t total = 0;
  for (const auto& entry : folded_) {
    if (const auto folded = entry.lock()) total += folded->bytes();
  }
  return total;
}

}  // namespace annulus::cpu
