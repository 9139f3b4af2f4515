// SPDX-License-Identifier: Apache-2.0
#include "layers/conv2d.h"

#include "layers/layer_kinds.h"

namespace annulus {

Schema Conv2d::describe() {
  Schema schema;
  schema.key("conv", &channels_, "output channels").at_least(1).at_most(max_layer_size).required();
  extent_key(schema, "kernel", &window_.kernel, 1, "height and width of the kernel; default 1");
  extent_key(schema, "stride", &window_.stride, 1, "step of the kernel; default 1");
  padding_key(schema, &window_);
  extent_key(schema, "dilation", &window_.dilation, 1,
             "distance of the kernel's taps; 1, the default, is dense");
  schema.key("groups", &groups_, "parts that the channels are split into; both must be multiples")
      .at_least(1)
      .at_most(max_layer_size);
  schema.key("bias", &bias_, "add a bias to each output channel");
  initializer_key(schema, "weight_init", &weight_init_, "start of the weights; default \"he\"");
  initializer_key(schema, "bias_init", &bias_init_, "start of the biases; default 0");
  return schema;
}

void Conv2d::check(const Location& where, Problems& problems) const {
  if (channels_ % groups_ != 0) {
    problems.add(
        where, fmt::format("'groups' = {} must divide the {} output channels", groups_, channels_));
  }
}

Shape Conv2d::infer(std::span<const Shape> inputs) {
  require_image(inputs[0]);
  require(inputs[0][0] % groups_ == 0, ErrorKind::usage,
          "'groups' = {} must divide the {} input channels", groups_, inputs[0][0]);
  in_channels_ = inputs[0][0];
  fit_ = fit_window(window_, inputs[0]);
  return {channels_, fit_.output.h, fit_.output.w};
}

std::vector<ParameterSpec> Conv2d::parameters() const {
  const Shape weight = weight_shape();
  const std::int64_t taps = weight[2] * weight[3];
  std::vector<ParameterSpec> parameters = {
      {"weight", weight, weight_init_, weight[1] * taps, channels_ / groups_ * taps, true}};
  if (bias_) parameters.push_back({"bias", {channels_}, bias_init_, 1, 1, false});
  return parameters;
}

std::int64_t Conv2d::macs() const {
  return Shape{weight_shape().elements(), fit_.output.h, fit_.output.w}.elements();
}

std::unique_ptr<Op> Conv2d::make_op(Backend& backend, const OpRequest& request) const {
  return make_op(backend, request, {});
}

std::unique_ptr<Op> Conv2d::make_op(Backend& backend, const OpRequest& request,
                                    const Conv2dTail& tail) const {
  return backend.conv2d(request, {.out_channels = channels_,
                                  .kernel = window_.kernel,
                                  .stride = window_.stride,
                                  .dilation = window_.dilation,
                                  .padding = fit_.padding,
                                  .groups = groups_,
                                  .bias = bias_,
                                  .tail = tail});
}

Shape Conv2d::weight_shape() const {
  return {channels_, in_channels_ / groups_, window_.kernel.h, window_.kernel.w};
}

std::unique_ptr<Layer> make_conv2d() {
  return std::make_unique<Conv2d>();
}

}  // namespace annulus
