// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/buffer.h"
#include "layers/cpu/dnnl.h"
#include "layers/cpu/reorder.h"

namespace annulus::cpu {

// A convolution's weight as it is kept and as the primitive wants it, and its bias.
struct ConvWeights {
  int parameter = 0;
  Desc plain;
  Desc kept;
  Desc wanted;
  std::int64_t channels = 0;  // of the output
  bool bias = false;
};

// The weight and bias of a convolution that does the batch norm after it too:
// w[c] scale[c] / sqrt(variance[c] + epsilon), and (bias[c] - mean[c]) times that factor +
// shift[c]. Made again when the weights change.
class FoldedNorm {
 public:
  FoldedNorm(const Engine& engine, const ConvWeights& weights, double epsilon);

  const ConvWeights& weights() const { return weights_; }
  double epsilon() const { return epsilon_; }
  std::size_t workspace() const { return plan_.bytes(); }

  // `parameters`: weight, bias where there is one, scale, shift; `running`: mean, variance.
  void update(std::span<const float* const> parameters, std::span<const float* const> running,
              std::int64_t version, std::byte* workspace);
  const float* weight() const { return weight_.as<float>(); }
  const float* bias() const { return bias_.as<float>(); }
  std::size_t bytes() const { return weight_.bytes() + bias_.bytes(); }

 private:
  // Multiplies the plain weight by the factor of each channel and sets the bias.
  void fold(std::span<const float* const> parameters, std::span<const float* const> running,
            float* plain);

  const Engine& engine_;
  ConvWeights weights_;
  double epsilon_;
  Buffer weight_;
  Buffer bias_;
  WorkspacePlan plan_;
  std::size_t plain_ = 0;
  Reorder to_plain_;
  Reorder to_wanted_;
  const float* source_ = nullptr;  // what they were made from
  std::int64_t version_ = 0;
};

// The folded weights of a rank: operations for several batch sizes share them.
class FoldedCache {
 public:
  explicit FoldedCache(const Engine& engine) : engine_(engine) {}

  std::shared_ptr<FoldedNorm> get(const ConvWeights& weights, double epsilon);
  std::size_t bytes() const;

 private:
  const Engine& engine_;
  std::vector<std::weak_ptr<FoldedNorm>> folded_;
};

}  // namespace annulus::cpu
