// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/cpu/parallel.h"
#include "layers/cpu/make_ops.h"

namespace annulus::cpu {
namespace {

ValueType joined(const std::vector<ValueType>& inputs) {
  Shape shape = inputs[0].shape;
  for (std::size_t i = 1; i < inputs.size(); ++i) shape[1] += inputs[i].shape[1];
  return make_value(shape, format_of(inputs[0]));
}

// Channels `first_from`, ... of one value to channels `first_to`, ... of another, for all images.
struct ChannelCopy {
  ChannelView from;
  ChannelView to;
  std::int64_t first_from = 0;
  std::int64_t first_to = 0;
  std::int64_t channels = 0;

  void run(const float* source, float* target) const {
    parallel_for(from.images * channels, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end;) {
        const std::int64_t image = i / channels;
        const std::int64_t channel = i % channels;
        const std::int64_t left = std::min(end - i, channels - channel);
        i += copy_some(source, target, image, channel, left);
      }
    });
  }

 private:
  // Copies as many channels as lie side by side on both sides; returns their number.
  std::int64_t copy_some(const float* source, float* target, std::int64_t image,
                         std::int64_t channel, std::int64_t left) const {
    const std::int64_t a = first_from + channel;
    const std::int64_t b = first_to + channel;
    const std::int64_t count =
        std::min({left, from.lanes - a % from.lanes, to.lanes - b % to.lanes});
    const float* read = source + from.channel_offset(image, a);
    float* write = target + to.channel_offset(image, b);
    for (std::int64_t p = 0; p < from.positions; ++p) {
      std::copy_n(read + p * from.position_stride, count, write + p * to.position_stride);
    }
    return count;
  }
};

// Takes the layout of its first input.
class Concat final : public CpuOp {
 public:
  Concat(Context& context, const OpRequest& request)
      : CpuOp(context, request, joined(request.inputs)), view_(channel_view(output_)) {
    for (const ValueType& input : request.inputs) inputs_.push_back(channel_view(input));
  }

  void forward(const ForwardCall& call) override {
    std::int64_t first = 0;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      ChannelCopy{inputs_[i], view_, 0, first, inputs_[i].channels}.run(call.inputs[i],
                                                                        call.output);
      first += inputs_[i].channels;
    }
    clear_padding(view_, call.output);
  }

  void backward(const BackwardCall& call) override {
    std::int64_t first = 0;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const std::int64_t channels = inputs_[i].channels;
      if (wants_gradient(i)) {
        ChannelCopy{view_, inputs_[i], first, 0, channels}.run(call.output_gradient,
                                                               call.input_gradients[i]);
        clear_padding(inputs_[i], call.input_gradients[i]);
      }
      first += channels;
    }
  }

 private:
  ChannelView view_;
  std::vector<ChannelView> inputs_;
};

}  // namespace

std::unique_ptr<Op> make_concat(Context& context, const OpRequest& request) {
  return std::make_unique<Concat>(context, request);
}

}  // namespace annulus::cpu
