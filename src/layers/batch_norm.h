// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "layers/layer.h"

namespace annulus {

// relu?(scale (x - mean) / sqrt(variance + epsilon) + shift (+ input 1)); parameters scale (C) and
// shift (C), statistics running_mean (C) and running_variance (C).
class BatchNorm final : public Layer {
 public:
  Schema describe() override;
  void check(const Location& where, Problems& problems) const override;
  std::vector<std::string> references() const override;
  Shape infer(std::span<const Shape> inputs) override;
  int min_inputs() const override { return adds_ ? 2 : 1; }
  int max_inputs() const override { return min_inputs(); }
  std::vector<ParameterSpec> parameters() const override;
  std::vector<StatisticSpec> statistics() const override;
  std::unique_ptr<Op> make_op(Backend& backend, const OpRequest& request) const override;

  BatchNormDesc desc() const { return {.epsilon = epsilon_, .add = adds_, .relu = relu_}; }

  // Takes over a sum, or a ReLU, that follows and reads nothing else (fuse.cpp).
  bool can_add() const { return !adds_ && !relu_; }
  void fuse_add() { adds_ = true; }
  bool can_relu() const { return !relu_; }
  void fuse_relu() { relu_ = true; }

 private:
  bool relu_ = false;
  bool adds_ = false;
  std::string addend_;
  double epsilon_ = 1e-5;
  double momentum_ = 0.1;
  InitializerSpec init_ = InitializerSpec::constant(1);
  std::int64_t channels_ = 0;
};

}  // namespace annulus
