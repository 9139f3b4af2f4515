// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "layers/layer.h"
#include "layers/window.h"

namespace annulus {

// Output (out, H', W'); parameters weight (out, in / groups, kernel h, kernel w) and bias (out).
class Conv2d final : public Layer {
 public:
  Schema describe() override;
  void check(const Location& where, Problems& problems) const override;
  Shape infer(std::span<const Shape> inputs) override;
  std::vector<ParameterSpec> parameters() const override;
  std::int64_t macs() const override;
  std::unique_ptr<Op> make_op(Backend& backend, const OpRequest& request) const override;

  // The convolution and what follows it as one operation; `request` has the inputs and parameters
  // of both.
  std::unique_ptr<Op> make_op(Backend& backend, const OpRequest& request,
                              const Conv2dTail& tail) const;

 private:
  Shape weight_shape() const;

  std::int64_t channels_ = 1;
  WindowSpec window_;
  std::int64_t groups_ = 1;
  bool bias_ = true;
  InitializerSpec weight_init_;
  InitializerSpec bias_init_ = InitializerSpec::constant(0);
  std::int64_t in_channels_ = 0;
  WindowFit fit_;
};

}  // namespace annulus
