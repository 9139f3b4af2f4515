// SPDX-License-Identifier: Apache-2.0
#include "train/flat_optimizer.h"

namespace annulus {
namespace {

class Sgd final : public FlatOptimizer {
 public:
  explicit Sgd(const OptimizerSetup& setup) : FlatOptimizer(setup) {
    if (spec().momentum > 0) velocity_ = add_moment("velocity");
  }

 private:
  void apply(const Step& step) override {
    SgdStep sgd;
    sgd.lr = step.lr;
    sgd.momentum = static_cast<float>(spec().momentum);
    sgd.nesterov = spec().nesterov;
    sgd.scale = step.scale;
    sgd.clip_value = static_cast<float>(spec().clip_value);
    ops().sgd(step.weights, velocity_, step.gradient, ranges(), sgd);
  }

  std::span<float> velocity_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(const OptimizerSetup& setup) {
  return std::make_unique<Sgd>(setup);
}

}  // namespace annulus
