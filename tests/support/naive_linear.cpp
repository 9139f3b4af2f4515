// SPDX-License-Identifier: Apache-2.0
// Convolution and the linear layer.
#include "support/naive_op.h"

namespace annulus::naive {
namespace {

class Conv2d final : public NaiveOp {
 public:
  Conv2d(const OpRequest& request, const Conv2dDesc& desc)
      : NaiveOp(request, output_shape(request, desc)),
        desc_(desc),
        in_part_(in_.c / desc.groups),
        out_part_(desc.out_channels / desc.groups) {
    memory_.backward_reads_input[0] = true;
  }

  void forward(const ForwardCall& call) override {
    for (std::int64_t n = 0; n < out_.n; ++n) {
      for (std::int64_t oc = 0; oc < out_.c; ++oc) {
        for (std::int64_t oh = 0; oh < out_.h; ++oh) {
          for (std::int64_t ow = 0; ow < out_.w; ++ow) {
            const double bias = desc_.bias ? call.parameters[1][oc] : 0;
            call.output[out_.at(n, oc, oh, ow)] =
                static_cast<float>(bias + pixel(call, n, oc, oh, ow));
          }
        }
      }
    }
  }

  void backward(const BackwardCall& call) override {
    weight_gradient(call);
    if (desc_.bias) bias_gradient(call);
    if (call.input_gradients[0] != nullptr) input_gradient(call);
  }

 private:
  static Shape output_shape(const OpRequest& request, const Conv2dDesc& d) {
    const Shape& in = request.inputs[0].shape;
    const auto extent = [](std::int64_t padded, std::int64_t k, std::int64_t dilation,
                           std::int64_t stride) {
      return (padded - dilation * (k - 1) - 1) / stride + 1;
    };
    return {in[0], d.out_channels,
            extent(in[2] + d.padding.top + d.padding.bottom, d.kernel.h, d.dilation.h, d.stride.h),
            extent(in[3] + d.padding.left + d.padding.right, d.kernel.w, d.dilation.w, d.stride.w)};
  }

  std::int64_t row(std::int64_t oh, std::int64_t kh) const {
    return oh * desc_.stride.h - desc_.padding.top + kh * desc_.dilation.h;
  }
  std::int64_t column(std::int64_t ow, std::int64_t kw) const {
    return ow * desc_.stride.w - desc_.padding.left + kw * desc_.dilation.w;
  }
  std::int64_t weight_at(std::int64_t oc, std::int64_t ic, std::int64_t kh, std::int64_t kw) const {
    return ((oc * in_part_ + ic) * desc_.kernel.h + kh) * desc_.kernel.w + kw;
  }

  double pixel(const ForwardCall& call, std::int64_t n, std::int64_t oc, std::int64_t oh,
               std::int64_t ow) const {
    double sum = 0;
    const std::int64_t first = oc / out_part_ * in_part_;
    for (std::int64_t ic = 0; ic < in_part_; ++ic) {
      for (std::int64_t kh = 0; kh < desc_.kernel.h; ++kh) {
        for (std::int64_t kw = 0; kw < desc_.kernel.w; ++kw) {
          const std::int64_t ih = row(oh, kh);
          const std::int64_t iw = column(ow, kw);
          if (!in_.inside(ih, iw)) continue;
          sum += static_cast<double>(call.inputs[0][in_.at(n, first + ic, ih, iw)]) *
                 call.parameters[0][weight_at(oc, ic, kh, kw)];
        }
      }
    }
    return sum;
  }

  void weight_gradient(const BackwardCall& call) const {
    for (std::int64_t oc = 0; oc < out_.c; ++oc) {
      for (std::int64_t ic = 0; ic < in_part_; ++ic) {
        for (std::int64_t kh = 0; kh < desc_.kernel.h; ++kh) {
          for (std::int64_t kw = 0; kw < desc_.kernel.w; ++kw) {
            call.parameter_gradients[0][weight_at(oc, ic, kh, kw)] =
                static_cast<float>(tap_gradient(call, oc, ic, kh, kw));
          }
        }
      }
    }
  }

  double tap_gradient(const BackwardCall& call, std::int64_t oc, std::int64_t ic, std::int64_t kh,
                      std::int64_t kw) const {
    double sum = 0;
    const std::int64_t channel = oc / out_part_ * in_part_ + ic;
    for (std::int64_t n = 0; n < out_.n; ++n) {
      for (std::int64_t oh = 0; oh < out_.h; ++oh) {
        for (std::int64_t ow = 0; ow < out_.w; ++ow) {
          const std::int64_t ih = row(oh, kh);
          const std::int64_t iw = column(ow, kw);
          if (!in_.inside(ih, iw)) continue;
          sum += static_cast<double>(call.output_gradient[out_.at(n, oc, oh, ow)]) *
                 call.inputs[0][in_.at(n, channel, ih, iw)];
        }
      }
    }
    return sum;
  }

  void bias_gradient(const BackwardCall& call) const {
    for (std::int64_t oc = 0; oc < out_.c; ++oc) {
      double sum = 0;
      for (std::int64_t n = 0; n < out_.n; ++n) {
        for (std::int64_t p = 0; p < out_.pixels(); ++p) {
          sum += call.output_gradient[out_.at(n, oc, 0, 0) + p];
        }
      }
      call.parameter_gradients[1][oc] = static_cast<float>(sum);
    }
  }

  void input_gradient(const BackwardCall& call) const {
    for (std::int64_t n = 0; n < in_.n; ++n) {
      for (std::int64_t ic = 0; ic < in_.c; ++ic) {
        for (std::int64_t ih = 0; ih < in_.h; ++ih) {
          for (std::int64_t iw = 0; iw < in_.w; ++iw) {
            call.input_gradients[0][in_.at(n, ic, ih, iw)] =
                static_cast<float>(pixel_gradient(call, n, ic, ih, iw));
          }
        }
      }
    }
  }

  double pixel_gradient(const BackwardCall& call, std::int64_t n, std::int64_t ic, std::int64_t ih,
                        std::int64_t iw) const {
    double sum = 0;
    const std::int64_t first = ic / in_part_ * out_part_;
    for (std::int64_t oc = first; oc < first + out_part_; ++oc) {
      for (std::int64_t kh = 0; kh < desc_.kernel.h; ++kh) {
        for (std::int64_t kw = 0; kw < desc_.kernel.w; ++kw) {
          const std::int64_t h = ih + desc_.padding.top - kh * desc_.dilation.h;
          const std::int64_t w = iw + desc_.padding.left - kw * desc_.dilation.w;
          if (h % desc_.stride.h != 0 || w % desc_.stride.w != 0) continue;
          if (!out_.inside(h / desc_.stride.h, w / desc_.stride.w) || h < 0 || w < 0) continue;
          sum += static_cast<double>(
                     call.output_gradient[out_.at(n, oc, h / desc_.stride.h, w / desc_.stride.w)]) *
                 call.parameters[0][weight_at(oc, ic % in_part_, kh, kw)];
        }
      }
    }
    return sum;
  }

  Conv2dDesc desc_;
  std::int64_t in_part_;
  std::int64_t out_part_;
};

class Linear final : public NaiveOp {
 public:
  Linear(const OpRequest& request, const LinearDesc& desc)
      : NaiveOp(request, {request.inputs[0].shape[0], desc.out_features}),
        bias_(desc.bias),
        features_(in_.elements() / in_.n) {
    memory_.backward_reads_input[0] = true;
  }

  void forward(const ForwardCall& call) override {
    for (std::int64_t n = 0; n < out_.n; ++n) {
      for (std::int64_t o = 0; o < out_.c; ++o) {
        double sum = bias_ ? call.parameters[1][o] : 0;
        for (std::int64_t i = 0; i < features_; ++i) {
          sum += static_cast<double>(call.inputs[0][n * features_ + i]) *
                 call.parameters[0][o * features_ + i];
        }
        call.output[n * out_.c + o] = static_cast<float>(sum);
      }
    }
  }

  void backward(const BackwardCall& call) override {
    for (std::int64_t o = 0; o < out_.c; ++o) {
      for (std::int64_t i = 0; i < features_; ++i) {
        double sum = 0;
        for (std::int64_t n = 0; n < out_.n; ++n) {
          sum += static_cast<double>(call.output_gradient[n * out_.c + o]) *
                 call.inputs[0][n * features_ + i];
        }
        call.parameter_gradients[0][o * features_ + i] = static_cast<float>(sum);
      }
      if (bias_) {
        double sum = 0;
        for (std::int64_t n = 0; n < out_.n; ++n) sum += call.output_gradient[n * out_.c + o];
        call.parameter_gradients[1][o] = static_cast<float>(sum);
      }
    }
    if (call.input_gradients[0] != nullptr) input_gradient(call);
  }

 private:
  void input_gradient(const BackwardCall& call) const {
    for (std::int64_t n = 0; n < out_.n; ++n) {
      for (std::int64_t i = 0; i < features_; ++i) {
        double sum = 0;
        for (std::int64_t o = 0; o < out_.c; ++o) {
          sum += static_cast<double>(call.output_gradient[n * out_.c + o]) *
                 call.parameters[0][o * features_ + i];
        }
        call.input_gradients[0][n * features_ + i] = static_cast<float>(sum);
      }
    }
  }

  bool bias_;
  std::int64_t features_;
};

}  // namespace

std::unique_ptr<Op> conv2d(const OpRequest& request, const Conv2dDesc& desc) {
  return std::make_unique<Conv2d>(request, desc);
}

std::unique_ptr<Op> linear(const OpRequest& request, const LinearDesc& desc) {
  return std::make_unique<Linear>(request, desc);
}

}  // namespace annulus::naive
