// SPDX-License-Identifier: Apache-2.0
#include "core/update_ops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "core/cpu/parallel.h"
#include "core/error.h"

namespace annulus {
namespace {

constexpr std::int64_t block_elements = 16384;  // unit of the sums: part of what a norm means
constexpr std::int64_t lanes = 16;              // partial sums within a block; divides it
constexpr std::int64_t grain = 32768;           // fewer elements are not worth a thread

std::int64_t length(std::span<const float> buffer) {
  return static_cast<std::int64_t>(buffer.size());
}

// Sum of squares of at most one block. Lane i adds elements i, i + lanes, ...: an order that vector
// code keeps, whatever its width.
double block_sum(const float* values, std::int64_t count) {
  std::array<double, lanes> sums{};
  const std::int64_t whole = count - count % lanes;
  for (std::int64_t i = 0; i < whole; i += lanes) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const double value = values[i + lane];
      sums[static_cast<std::size_t>(lane)] += value * value;
    }
  }
  for (std::int64_t i = whole; i < count; ++i) {
    const double value = values[i];
    sums[static_cast<std::size_t>(i - whole)] += value * value;
  }
  double total = 0;
  for (double sum : sums) total += sum;
  return total;
}

void check_cover(std::span<const DecayRange> ranges, std::int64_t count) {
  std::int64_t end = 0;
  for (const DecayRange& range : ranges) {
    require_equal(end, range.begin, "begin of a decay range");
    end = range.end;
  }
  require_equal(count, end, "end of the decay ranges");
}

// Calls f(begin, end, decay) on the compute threads for pieces that cover 0..count.
template <class F>
void for_each_range(std::span<const DecayRange> ranges, std::int64_t count, const F& f) {
  check_cover(ranges, count);
  parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
    const auto first =
        std::find_if(ranges.begin(), ranges.end(), [&](const auto& r) { return r.end > begin; });
    for (auto range = first; range != ranges.end() && range->begin < end; ++range) {
      f(std::max(begin, range->begin), std::min(end, range->end), range->decay);
    }
  });
}

// An infinite limit lets every finite number pass: one loop with and without clipping.
float limit_of(float clip_value) {
  return clip_value > 0 ? clip_value : std::numeric_limits<float>::infinity();
}

float clipped(float value, float limit) {
  return std::min(std::max(value, -limit), limit);
}

struct Pointers {
  float* __restrict weights;
  float* __restrict velocity;
  const float* __restrict gradient;
};

void sgd_plain(Pointers p, std::int64_t begin, std::int64_t end, float decay, const SgdStep& step) {
  const float limit = limit_of(step.clip_value);
  const float scale = step.scale;
  const float lr = step.lr;
  for (std::int64_t i = begin; i < end; ++i) {
    const float g = clipped(scale * p.gradient[i], limit) + decay * p.weights[i];
    p.weights[i] -= lr * g;
  }
}

template <bool nesterov>
void sgd_momentum(Pointers p, std::int64_t begin, std::int64_t end, float decay,
                  const SgdStep& step) {
  const float limit = limit_of(step.clip_value);
  const float scale = step.scale;
  const float momentum = step.momentum;
  const float lr = step.lr;
  for (std::int64_t i = begin; i < end; ++i) {
    const float g = clipped(scale * p.gradient[i], limit) + decay * p.weights[i];
    const float v = momentum * p.velocity[i] + g;
    p.velocity[i] = v;
    p.weights[i] -= lr * (nesterov ? g + momentum * v : v);
  }
}

// What a step of AdamW has in common for all elements, in the precision of the elements.
struct AdamWFactors {
  explicit AdamWFactors(const AdamWStep& step)
      : keep1(static_cast<float>(step.beta1)),
        take1(static_cast<float>(1 - step.beta1)),
        keep2(static_cast<float>(step.beta2)),
        take2(static_cast<float>(1 - step.beta2)) {
    const auto t = static_cast<double>(step.t);
    rate = static_cast<float>(step.lr / (1 - std::pow(step.beta1, t)));
    unbias2 = static_cast<float>(1 / (1 - std::pow(step.beta2, t)));
  }

  float keep1, take1, keep2, take2;
  float rate;     // lr / (1 - beta1^t)
  float unbias2;  // 1 / (1 - beta2^t)
};

class CpuUpdateOps final : public UpdateOps {
 public:
  GradientReport inspect(std::span<const float> gradient, double scale) override {
    const std::int64_t count = length(gradient);
    const std::int64_t blocks = (count + block_elements - 1) / block_elements;
    partial_.resize(static_cast<std::size_t>(blocks));
    parallel_for(blocks, grain / block_elements, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) {
        const std::int64_t first = b * block_elements;
        partial_[static_cast<std::size_t>(b)] =
            block_sum(gradient.data() + first, std::min(block_elements, count - first));
      }
    });
    double total = 0;
    for (double sum : partial_) total += sum;
    // Squares of fp32 cannot overflow fp64: the sum is finite where all elements are.
    total *= scale * scale;
    return {total, std::isfinite(total)};
  }

  void sgd(std::span<float> weights, std::span<float> velocity, std::span<const float> gradient,
           std::span<const DecayRange> ranges, const SgdStep& step) override {
    const bool plain = step.momentum == 0;
    require_equal(weights.size(), gradient.size(), "length of the gradient");
    require_equal(plain ? 0 : weights.size(), velocity.size(), "length of the velocity");
    const Pointers p{weights.data(), velocity.data(), gradient.data()};
    for_each_range(ranges, length(weights), [&](std::int64_t b, std::int64_t e, float decay) {
      if (plain) {
        sgd_plain(p, b, e, decay, step);
      } else if (step.nesterov) {
        sgd_momentum<true>(p, b, e, decay, step);
      } else {
        sgd_momentum<false>(p, b, e, decay, step);
      }
    });
  }

  void adamw(std::span<float> weights, std::span<float> first, std::span<float> second,
             std::span<const float> gradient, std::span<const DecayRange> ranges,
             const AdamWStep& step) override {
    require_equal(weights.size(), gradient.size(), "length of the gradient");
    require_equal(weights.size(), first.size(), "length of the first moment");
    require_equal(weights.size(), second.size(), "length of the second moment");
    const AdamWFactors factors(step);
    const float limit = limit_of(step.clip_value);
    for_each_range(ranges, length(weights), [&](std::int64_t b, std::int64_t e, float decay) {
      float* __restrict w = weights.data();
      float* __restrict m = first.data();
      float* __restrict v = second.data();
      const float* __restrict gradients = gradient.data();
      const AdamWFactors k = factors;
      const float scale = step.scale;
      const float epsilon = step.epsilon;
      const float shrink = step.lr * decay;
      for (std::int64_t i = b; i < e; ++i) {
        const float g = clipped(scale * gradients[i], limit);
        m[i] = k.keep1 * m[i] + k.take1 * g;
        v[i] = k.keep2 * v[i] + k.take2 * (g * g);
        w[i] = w[i] - shrink * w[i] - k.rate * m[i] / (std::sqrt(v[i] * k.unbias2) + epsilon);
      }
    });
  }

  void follow(std::span<float> running, std::span<const float> sum, double count,
              double momentum) override {
    require_equal(running.size(), sum.size(), "length of the statistics");
    require(count > 0, ErrorKind::bug, "running statistics of {} samples", count);
    for (std::size_t i = 0; i < running.size(); ++i) {
      running[i] = static_cast<float>((1 - momentum) * running[i] + momentum * (sum[i] / count));
    }
  }

 private:
  std::vector<double> partial_;  // sum of each block
};

}  // namespace

std::unique_ptr<UpdateOps> make_cpu_update_ops() {
  return std::make_unique<CpuUpdateOps>();
}

}  // namespace annulus
