// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/cpu/parallel.h"
#include "layers/cpu/make_ops.h"

namespace annulus::cpu {
namespace {

// Over the channels of each position, in the input's layout.
class Softmax final : public CpuOp {
 public:
  Softmax(Context& context, const OpRequest& request)
      : CpuOp(context, request, request.inputs[0]), view_(channel_view(output_)) {
    memory_.backward_reads_output = training();
    memory_.forward_in_place = true;
    memory_.backward_in_place = true;
  }

  void forward(const ForwardCall& call) override {
    for_each_position([&](std::int64_t image, std::int64_t position) {
      normalize(call.inputs[0], call.output, image, position);
    });
    clear_padding(view_, call.output);
  }

  void backward(const BackwardCall& call) override {
    if (!wants_gradient(0)) return;
    for_each_position([&](std::int64_t image, std::int64_t position) {
      const float* y = call.output;
      const float* dy = call.output_gradient;
      double dot = 0;
      for (std::int64_t c = 0; c < view_.channels; ++c) {
        const std::int64_t i = at(image, c, position);
        dot += static_cast<double>(y[i]) * dy[i];
      }
      const auto mean = static_cast<float>(dot);
      for (std::int64_t c = 0; c < view_.channels; ++c) {
        const std::int64_t i = at(image, c, position);
        call.input_gradients[0][i] = y[i] * (dy[i] - mean);
      }
    });
    clear_padding(view_, call.input_gradients[0]);
  }

 private:
  std::int64_t at(std::int64_t image, std::int64_t channel, std::int64_t position) const {
    return view_.channel_offset(image, channel) + position * view_.position_stride;
  }

  template <class F>
  void for_each_position(const F& f) const {
    parallel_for(view_.images * view_.positions, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) f(i / view_.positions, i % view_.positions);
    });
  }

  void normalize(const float* x, float* y, std::int64_t image, std::int64_t position) const {
    float highest = x[at(image, 0, position)];
    for (std::int64_t c = 1; c < view_.channels; ++c) {
      highest = std::max(highest, x[at(image, c, position)]);
    }
    double sum = 0;
    for (std::int64_t c = 0; c < view_.channels; ++c) {
      const std::int64_t i = at(image, c, position);
      y[i] = std::exp(x[i] - highest);
      sum += y[i];
    }
    const auto scale = static_cast<float>(1 / sum);
    for (std::int64_t c = 0; c < view_.channels; ++c) y[at(image, c, position)] *= scale;
  }

  ChannelView view_;
};

}  // namespace

std::unique_ptr<Op> make_softmax(Context& context, const OpRequest& request) {
  return std::make_unique<Softmax>(context, request);
}

}  // namespace annulus::cpu
