// SPDX-License-Identifier: Apache-2.0
#include "layers/cpu/make_ops.h"

namespace annulus::cpu {
namespace {

using Forward = dnnl::inner_product_forward;
using BackwardData = dnnl::inner_product_backward_data;
using BackwardWeights = dnnl::inner_product_backward_weights;

// All in plain layouts: the matrix products read and write the parameters as they are, so that
// wide layers (VGG's first has 400 MB of weights) need no second copy and no packing each step.
struct Matrices {
  Desc source, weight, bias, result;
};

class Linear final : public CpuOp {
 public:
  Linear(Context& context, const OpRequest& request, const LinearDesc& desc)
      : CpuOp(context, request,
              make_value({request.inputs[0].shape[0], desc.out_features}, Format::plain)),
        bias_(desc.bias) {
    const Shape& shape = request.inputs[0].shape;
    const std::int64_t features = shape.elements_from(1);
    m_.source = plain_desc({shape[0], features});
    m_.weight = plain_desc({desc.out_features, features});
    if (bias_) m_.bias = plain_desc({desc.out_features});
    m_.result = desc_of(output_);
    // The reorder knows the input by its own axes; plain, they are one after the other in memory.
    plain_source_ = plain_desc(dims_of(shape));
    prepare(desc_of(request.inputs[0]));
  }

  void forward(const ForwardCall& call) override {
    const void* source = source_.run(context_.engine, call.inputs[0], call.workspace);
    forward_.run(context_.engine, {source, call.parameters[0], bias_ ? call.parameters[1] : nullptr,
                                   call.output, call.workspace + scratchpad_});
  }

  void backward(const BackwardCall& call) override {
    if (wants_gradient(0)) {
      float* gradient = call.input_gradients[0];
      data_.run(context_.engine, {call.output_gradient, call.parameters[0],
                                  source_gradient_.target(gradient, call.workspace),
                                  call.workspace + data_scratchpad_});
      source_gradient_.run(context_.engine, gradient, call.workspace);
    }
    const void* source = weights_source_.run(context_.engine, call.inputs[0], call.workspace);
    weights_.run(context_.engine, {source, call.output_gradient, call.parameter_gradients[0],
                                   bias_ ? call.parameter_gradients[1] : nullptr,
                                   call.workspace + weights_scratchpad_});
  }

  std::string implementation() const override { return implementation_; }

 private:
  void prepare(const Desc& input) {
    const auto kind =
        training() ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
    const auto desc =
        forward_desc<Forward>(context_.engine, kind, m_.source, m_.weight, m_.bias, m_.result);
    implementation_ = desc.impl_info_str();
    WorkspacePlan plan;
    source_ = InputReorder(context_.engine, input, plain_source_, plan);
    scratchpad_ = plan.add(desc.scratchpad_desc().get_size());
    forward_ = Call(context_.engine, Forward(desc),
                    {{DNNL_ARG_SRC, m_.source},
                     {DNNL_ARG_WEIGHTS, m_.weight},
                     {DNNL_ARG_BIAS, m_.bias},
                     {DNNL_ARG_DST, m_.result},
                     {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}});
    memory_.forward_workspace = plan.bytes();
    if (training()) prepare_backward(desc, input);
  }

  void prepare_backward(const Forward::primitive_desc& hint, const Desc& input) {
    WorkspacePlan plan;
    const auto weights = backward_desc<BackwardWeights>(context_.engine, hint, m_.source, m_.weight,
                                                        m_.bias, m_.result);
    weights_source_ = InputReorder(context_.engine, input, plain_source_, plan);
    weights_scratchpad_ = plan.add(weights.scratchpad_desc().get_size());
    weights_ = Call(context_.engine, BackwardWeights(weights),
                    {{DNNL_ARG_SRC, m_.source},
                     {DNNL_ARG_DIFF_DST, m_.result},
                     {DNNL_ARG_DIFF_WEIGHTS, m_.weight},
                     {DNNL_ARG_DIFF_BIAS, m_.bias},
                     {DNNL_ARG_SCRATCHPAD, weights.scratchpad_desc()}});
    if (wants_gradient(0)) prepare_data(hint, input, plan);
    memory_.backward_reads_input[0] = true;
    memory_.backward_workspace = plan.bytes();
  }

  void prepare_data(const Forward::primitive_desc& hint, const Desc& input, WorkspacePlan& plan) {
    const auto data =
        backward_desc<BackwardData>(context_.engine, hint, m_.source, m_.weight, m_.result);
    source_gradient_ = OutputReorder(context_.engine, plain_source_, input, plan);
    data_scratchpad_ = plan.add(data.scratchpad_desc().get_size());
    data_ = Call(context_.engine, BackwardData(data),
                 {{DNNL_ARG_DIFF_DST, m_.result},
                  {DNNL_ARG_WEIGHTS, m_.weight},
                  {DNNL_ARG_DIFF_SRC, m_.source},
                  {DNNL_ARG_SCRATCHPAD, data.scratchpad_desc()}});
  }

  bool bias_;
  Matrices m_;
  Desc plain_source_;
  std::string implementation_;

  InputReorder source_;
  Call forward_;
  std::size_t scratchpad_ = 0;
  OutputReorder source_gradient_;
  Call data_;
  std::size_t data_scratchpad_ = 0;
  InputReorder weights_source_;
  Call weights_;
  std::size_t weights_scratchpad_ = 0;
};

}  // namespace

std::unique_ptr<Op> make_linear(Context& context, const OpRequest& request,
                                const LinearDesc& desc) {
  return std::make_unique<Linear>(context, request, desc);
}

}  // namespace annulus::cpu
