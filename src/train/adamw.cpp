// SPDX-License-Identifier: Apache-2.0
#include "train/flat_optimizer.h"

namespace annulus {
namespace {

class AdamW final : public FlatOptimizer {
 public:
  explicit AdamW(const OptimizerSetup& setup)
      : FlatOptimizer(setup),
        first_(add_moment("first_moment")),
        second_(add_moment("second_moment")) {}

 private:
  void apply(const Step& step) override {
    AdamWStep adamw;
    adamw.lr = step.lr;
    adamw.beta1 = spec().beta1;
    adamw.beta2 = spec().beta2;
    adamw.epsilon = static_cast<float>(spec().epsilon);
    adamw.t = step.update + 1;
    adamw.scale = step.scale;
    adamw.clip_value = static_cast<float>(spec().clip_value);
    ops().adamw(step.weights, first_, second_, step.gradient, ranges(), adamw);
  }

  std::span<float> first_;
  std::span<float> second_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adamw(const OptimizerSetup& setup) {
  return std::make_unique<AdamW>(setup);
}

}  // namespace annulus
