// SPDX-License-Identifier: Apache-2.0
#include "layers/cpu/make_ops.h"

namespace annulus::cpu {
namespace {

using Forward = dnnl::convolution_forward;
using BackwardData = dnnl::convolution_backward_data;
using BackwardWeights = dnnl::convolution_backward_weights;

constexpr auto direct = dnnl::algorithm::convolution_direct;

// A matrix product as a 1x1 convolution: the rows of a plain matrix are the pixels of one image
// with channels last. Unlike oneDNN's inner product, which takes its packing buffers from the heap
// in each call, it allocates nothing of size on any instruction set. The price is packed weights
// and a reorder of their gradient: little for a million weights, two to three times the backward
// pass for tens of millions.
struct Image {
  Desc source, bias, result;
  Desc weight;  // as it is kept
  Dims weight_dims;
  Dims ones = {1, 1};
  Dims zeros = {0, 0};
};

Desc rows_as_pixels(std::int64_t rows, std::int64_t columns) {
  return {{1, columns, rows, 1}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::nhwc};
}

class Linear final : public CpuOp {
 public:
  Linear(Context& context, const OpRequest& request, const LinearDesc& desc)
      : CpuOp(context, request,
              make_value({request.inputs[0].shape[0], desc.out_features}, Format::plain)),
        bias_(desc.bias) {
    const Shape& shape = request.inputs[0].shape;
    const std::int64_t features = shape.elements_from(1);
    m_.source = rows_as_pixels(shape[0], features);
    m_.weight_dims = {desc.out_features, features, 1, 1};
    if (bias_) m_.bias = plain_desc({desc.out_features});
    m_.result = rows_as_pixels(shape[0], desc.out_features);
    // The reorder knows the input by its own axes; plain, they are one after the other in memory.
    plain_source_ = plain_desc(dims_of(shape));
    prepare(desc_of(request.inputs[0]));
  }

  void forward(const ForwardCall& call) override {
    const void* source = source_.run(context_.engine, call.inputs[0], call.workspace);
    const void* weight = weight_->get(call.parameters[0], call.step.weights_version);
    forward_.run(context_.engine, {source, weight, bias_ ? call.parameters[1] : nullptr,
                                   call.output, call.workspace + scratchpad_});
  }

  void backward(const BackwardCall& call) override {
    if (wants_gradient(0)) {
      float* gradient = call.input_gradients[0];
      const void* weight = data_weight_->get(call.parameters[0], call.step.weights_version);
      data_.run(context_.engine,
                {call.output_gradient, weight, source_gradient_.target(gradient, call.workspace),
                 call.workspace + data_scratchpad_});
      source_gradient_.run(context_.engine, gradient, call.workspace);
    }
    const void* source = weights_source_.run(context_.engine, call.inputs[0], call.workspace);
    float* gradient = call.parameter_gradients[0];
    weights_.run(
        context_.engine,
        {source, call.output_gradient, weights_gradient_.target(gradient, call.workspace),
         bias_ ? call.parameter_gradients[1] : nullptr, call.workspace + weights_scratchpad_});
    weights_gradient_.run(context_.engine, gradient, call.workspace);
  }

  std::string implementation() const override { return implementation_; }

 private:
  void prepare(const Desc& input) {
    const auto kind =
        training() ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
    const auto desc =
        forward_desc<Forward>(context_.engine, kind, direct, m_.source, any_desc(m_.weight_dims),
                              m_.bias, m_.result, m_.ones, m_.zeros, m_.zeros, m_.zeros);
    implementation_ = desc.impl_info_str();
    m_.weight =
        context_.kept.keep(request_.parameters[0], plain_desc(m_.weight_dims), desc.weights_desc());
    WorkspacePlan plan;
    source_ = InputReorder(context_.engine, input, plain_source_, plan);
    weight_ = context_.weights.get(request_.parameters[0], m_.weight, desc.weights_desc());
    scratchpad_ = plan.add(desc.scratchpad_desc().get_size());
    forward_ = Call(context_.engine, Forward(desc),
                    {{DNNL_ARG_SRC, m_.source},
                     {DNNL_ARG_WEIGHTS, desc.weights_desc()},
                     {DNNL_ARG_BIAS, m_.bias},
                     {DNNL_ARG_DST, m_.result},
                     {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}});
    memory_.forward_workspace = plan.bytes();
    if (training()) prepare_backward(desc, input);
  }

  void prepare_backward(const Forward::primitive_desc& hint, const Desc& input) {
    WorkspacePlan plan;
    const auto weights = backward_desc<BackwardWeights>(
        context_.engine, hint, direct, m_.source, any_desc(m_.weight_dims), m_.bias, m_.result,
        m_.ones, m_.zeros, m_.zeros, m_.zeros);
    weights_source_ = InputReorder(context_.engine, input, plain_source_, plan);
    weights_gradient_ =
        OutputReorder(context_.engine, weights.diff_weights_desc(), m_.weight, plan);
    weights_scratchpad_ = plan.add(weights.scratchpad_desc().get_size());
    weights_ = Call(context_.engine, BackwardWeights(weights),
                    {{DNNL_ARG_SRC, m_.source},
                     {DNNL_ARG_DIFF_DST, m_.result},
                     {DNNL_ARG_DIFF_WEIGHTS, weights.diff_weights_desc()},
                     {DNNL_ARG_DIFF_BIAS, m_.bias},
                     {DNNL_ARG_SCRATCHPAD, weights.scratchpad_desc()}});
    if (wants_gradient(0)) prepare_data(hint, input, plan);
    memory_.backward_reads_input[0] = true;
    memory_.backward_workspace = plan.bytes();
  }

  void prepare_data(const Forward::primitive_desc& hint, const Desc& input, WorkspacePlan& plan) {
    const auto data = backward_desc<BackwardData>(context_.engine, hint, direct, m_.source,
                                                  any_desc(m_.weight_dims), m_.result, m_.ones,
                                                  m_.zeros, m_.zeros, m_.zeros);
    data_weight_ = context_.weights.get(request_.parameters[0], m_.weight, data.weights_desc());
    source_gradient_ = OutputReorder(context_.engine, plain_source_, input, plan);
    data_scratchpad_ = plan.add(data.scratchpad_desc().get_size());
    data_ = Call(context_.engine, BackwardData(data),
                 {{DNNL_ARG_DIFF_DST, m_.result},
                  {DNNL_ARG_WEIGHTS, data.weights_desc()},
                  {DNNL_ARG_DIFF_SRC, m_.source},
                  {DNNL_ARG_SCRATCHPAD, data.scratchpad_desc()}});
  }

  bool bias_;
  Image m_;
  Desc plain_source_;
  std::string implementation_;

  InputReorder source_;
  std::shared_ptr<PackedWeight> weight_;
  Call forward_;
  std::size_t scratchpad_ = 0;
  OutputReorder source_gradient_;
  std::shared_ptr<PackedWeight> data_weight_;
  Call data_;
  std::size_t data_scratchpad_ = 0;
  InputReorder weights_source_;
  OutputReorder weights_gradient_;
  Call weights_;
  std::size_t weights_scratchpad_ = 0;
};

}  // namespace

std::unique_ptr<Op> make_linear(Context& context, const OpRequest& request,
                                const LinearDesc& desc) {
  return std::make_unique<Linear>(context, request, desc);
}

}  // namespace annulus::cpu
