// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/device.h"

namespace annulus {

// Elements [begin, end) of the flat buffers that share one weight decay.
struct DecayRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  float decay = 0;
};

// What the flat gradient looks like before an update.
struct GradientReport {
  double sum_of_squares = 0;  // of scale * gradient, in fp64 over fixed blocks, added up in order
  bool finite = true;         // no element is infinite or not a number
};

// v = momentum v + g; w = w - lr v; with nesterov w = w - lr (g + momentum v), where
// g = clip(scale * gradient, clip_value) + decay w. Without momentum there is no v: `velocity` is
// empty.
struct SgdStep {
  float lr = 0;
  float momentum = 0;
  bool nesterov = false;
  float scale = 1;       // unscaling and norm clipping in one factor
  float clip_value = 0;  // 0: off
};

// Decoupled weight decay (Loshchilov and Hutter, ICLR 2019, arXiv:1711.05101):
// m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g g;
// w = w - lr decay w - lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon).
struct AdamWStep {
  float lr = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  float epsilon = 1e-8F;
  std::int64_t t = 1;  // this update's number, from 1
  float scale = 1;
  float clip_value = 0;
};

// The passes over the flat buffers that make an update, on one device: each reads and writes every
// buffer once, and none allocates after its first call. The result does not depend on the number of
// threads. All buffers of a call have the same length, and the decay ranges cover it in increasing
// order; Error (bug) otherwise.
class UpdateOps {
 public:
  virtual ~UpdateOps() = default;
  virtual GradientReport inspect(std::span<const float> gradient, double scale) = 0;
  virtual void sgd(std::span<float> weights, std::span<float> velocity,
                   std::span<const float> gradient, std::span<const DecayRange> ranges,
                   const SgdStep& step) = 0;
  virtual void adamw(std::span<float> weights, std::span<float> first, std::span<float> second,
                     std::span<const float> gradient, std::span<const DecayRange> ranges,
                     const AdamWStep& step) = 0;
  // running = (1 - momentum) running + momentum sum / count; count > 0.
  virtual void follow(std::span<float> running, std::span<const float> sum, double count,
                      double momentum) = 0;
};

// The passes on `device`: `core/cpu/update_ops.cpp`, and `core/cuda/update_ops.cpp` or
// `core/no_cuda.cpp`, which throws (resource).
std::unique_ptr<UpdateOps> make_update_ops(DeviceContext& device);
std::unique_ptr<UpdateOps> make_cpu_update_ops();
std::unique_ptr<UpdateOps> make_cuda_update_ops(DeviceContext& device);

}  // namespace annulus
