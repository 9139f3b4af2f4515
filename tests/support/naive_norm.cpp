// SPDX-License-Identifier: Apache-2.0
// Batch norm and pooling.
#include <algorithm>
#include <cmath>
#include <limits>

#include "support/naive_op.h"

namespace annulus::naive {
namespace {

class BatchNorm final : public NaiveOp {
 public:
  BatchNorm(const OpRequest& request, const BatchNormDesc& desc)
      : NaiveOp(request, request.inputs[0].shape),
        desc_(desc),
        count_(static_cast<double>(in_.n * in_.pixels())) {
    memory_.backward_reads_input[0] = true;
    memory_.backward_reads_output = desc.relu;
    memory_.saved = training() ? static_cast<std::size_t>(2 * in_.c) * sizeof(double) : 0;
    memory_.forward_in_place = !training();
    memory_.backward_in_place = true;
  }

  void forward(const ForwardCall& call) override {
    for (std::int64_t c = 0; c < in_.c; ++c) {
      double mean = 0;
      double variance = 0;
      if (training()) {
        measure(call.inputs[0], c, mean, variance);
        auto* saved = reinterpret_cast<double*>(call.saved);
        saved[2 * c] = mean;
        saved[2 * c + 1] = 1 / std::sqrt(variance + desc_.epsilon);
        const double share = static_cast<double>(in_.n) / request_.uses;
        call.batch_sums[0][c] = static_cast<float>(share * mean);
        call.batch_sums[1][c] = static_cast<float>(share * variance * count_ / (count_ - 1));
      } else {
        mean = call.running[0][c];
        variance = call.running[1][c];
      }
      apply(call, c, mean, 1 / std::sqrt(variance + desc_.epsilon));
    }
  }

  void backward(const BackwardCall& call) override {
    const auto* saved = reinterpret_cast<const double*>(call.saved);
    for (std::int64_t c = 0; c < in_.c; ++c) {
      const double mean = saved[2 * c];
      const double inverse = saved[2 * c + 1];
      double sum = 0;
      double product = 0;
      for_each(c, [&](std::int64_t i) {
        const double g = gradient(call, i);
        sum += g;
        product += g * (call.inputs[0][i] - mean) * inverse;
        if (desc_.add && call.input_gradients[1] != nullptr) {
          call.input_gradients[1][i] = static_cast<float>(g);
        }
      });
      call.parameter_gradients[0][c] = static_cast<float>(product);
      call.parameter_gradients[1][c] = static_cast<float>(sum);
      if (call.input_gradients[0] == nullptr) continue;
      for_each(c, [&](std::int64_t i) {
        const double normal = (call.inputs[0][i] - mean) * inverse;
        const double g = gradient(call, i) - sum / count_ - normal * product / count_;
        call.input_gradients[0][i] = static_cast<float>(call.parameters[0][c] * inverse * g);
      });
    }
  }

 private:
  template <class F>
  void for_each(std::int64_t c, F&& f) const {
    for (std::int64_t n = 0; n < in_.n; ++n) {
      for (std::int64_t p = 0; p < in_.pixels(); ++p) f(in_.at(n, c, 0, 0) + p);
    }
  }

  void measure(const float* x, std::int64_t c, double& mean, double& variance) const {
    for_each(c, [&](std::int64_t i) { mean += x[i]; });
    mean /= count_;
    for_each(c, [&](std::int64_t i) { variance += (x[i] - mean) * (x[i] - mean); });
    variance /= count_;
  }

  void apply(const ForwardCall& call, std::int64_t c, double mean, double inverse) const {
    for_each(c, [&](std::int64_t i) {
      double y = call.parameters[0][c] * (call.inputs[0][i] - mean) * inverse;
      y += call.parameters[1][c];
      if (desc_.add) y += call.inputs[1][i];
      call.output[i] = static_cast<float>(desc_.relu && y < 0 ? 0 : y);
    });
  }

  double gradient(const BackwardCall& call, std::int64_t i) const {
    return desc_.relu && !(call.output[i] > 0) ? 0 : call.output_gradient[i];
  }

  BatchNormDesc desc_;
  double count_;
};

class Pool2d final : public NaiveOp {
 public:
  Pool2d(const OpRequest& request, const Pool2dDesc& desc)
      : NaiveOp(request, {request.inputs[0].shape[0], request.inputs[0].shape[1], desc.output.h,
                          desc.output.w}),
        desc_(desc) {
    memory_.backward_reads_input[0] = desc.kind == PoolKind::max;
  }

  void forward(const ForwardCall& call) override {
    for_each_window([&](std::int64_t plane, std::int64_t o, const Window& window) {
      const float* x = call.inputs[0] + plane * in_.pixels();
      float& y = call.output[plane * out_.pixels() + o];
      if (desc_.kind == PoolKind::max) {
        y = x[largest(x, window)];
        return;
      }
      double sum = 0;
      for_each_pixel(window, [&](std::int64_t i) { sum += x[i]; });
      y = static_cast<float>(sum / window.divisor);
    });
  }

  void backward(const BackwardCall& call) override {
    std::fill_n(call.input_gradients[0], in_.elements(), 0.0F);
    for_each_window([&](std::int64_t plane, std::int64_t o, const Window& window) {
      float* dx = call.input_gradients[0] + plane * in_.pixels();
      const float dy = call.output_gradient[plane * out_.pixels() + o];
      if (desc_.kind == PoolKind::max) {
        dx[largest(call.inputs[0] + plane * in_.pixels(), window)] += dy;
      } else {
        for_each_pixel(window,
                       [&](std::int64_t i) { dx[i] += static_cast<float>(dy / window.divisor); });
      }
    });
  }

 private:
  struct Window {
    std::int64_t top, bottom, left, right;  // in the image, ends excluded
    double divisor;
  };

  Window window_at(std::int64_t oh, std::int64_t ow) const {
    const std::int64_t h = oh * desc_.stride.h - desc_.padding.top;
    const std::int64_t w = ow * desc_.stride.w - desc_.padding.left;
    const std::int64_t h_end = std::min(h + desc_.kernel.h, in_.h + desc_.padding.bottom);
    const std::int64_t w_end = std::min(w + desc_.kernel.w, in_.w + desc_.padding.right);
    Window window{std::max<std::int64_t>(h, 0), std::min(h_end, in_.h),
                  std::max<std::int64_t>(w, 0), std::min(w_end, in_.w), 0};
    window.divisor = static_cast<double>(desc_.count_padding ? (h_end - h) * (w_end - w)
                                                             : (window.bottom - window.top) *
                                                                   (window.right - window.left));
    return window;
  }

  template <class F>
  void for_each_window(F&& f) const {
    for (std::int64_t plane = 0; plane < in_.n * in_.c; ++plane) {
      for (std::int64_t oh = 0; oh < out_.h; ++oh) {
        for (std::int64_t ow = 0; ow < out_.w; ++ow) f(plane, oh * out_.w + ow, window_at(oh, ow));
      }
    }
  }

  template <class F>
  void for_each_pixel(const Window& window, F&& f) const {
    for (std::int64_t h = window.top; h < window.bottom; ++h) {
      for (std::int64_t w = window.left; w < window.right; ++w) f(h * in_.w + w);
    }
  }

  // The first of the largest; the first NaN where there is one.
  std::int64_t largest(const float* x, const Window& window) const {
    std::int64_t best = window.top * in_.w + window.left;
    for_each_pixel(window, [&](std::int64_t i) {
      if (!std::isnan(x[best]) && (x[i] > x[best] || std::isnan(x[i]))) best = i;
    });
    return best;
  }

  Pool2dDesc desc_;
};

}  // namespace

std::unique_ptr<Op> batch_norm(const OpRequest& request, const BatchNormDesc& desc) {
  return std::make_unique<BatchNorm>(request, desc);
}

std::unique_ptr<Op> pool2d(const OpRequest& request, const Pool2dDesc& desc) {
  return std::make_unique<Pool2d>(request, desc);
}

}  // namespace annulus::naive
