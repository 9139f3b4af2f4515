// SPDX-License-Identifier: Apache-2.0
// To the plain layout, with the input's shape or flattened: the same memory either way.
#include "layers/cpu/make_ops.h"

namespace annulus::cpu {
namespace {

class ToPlain final : public CpuOp {
 public:
  ToPlain(Context& context, const OpRequest& request, const Shape& shape)
      : CpuOp(context, request, make_value(shape, Format::plain)) {
    const Desc& input = desc_of(request.inputs[0]);
    const Desc plain = plain_desc(dims_of(request.inputs[0].shape));
    memory_.alias = same_memory(input, plain);
    if (memory_.alias) return;
    WorkspacePlan forward;
    forward_ = Reorder(context.engine, input, plain, forward);
    memory_.forward_workspace = forward.bytes();
    if (!wants_gradient(0)) return;
    WorkspacePlan backward;
    backward_ = Reorder(context.engine, plain, input, backward);
    memory_.backward_workspace = backward.bytes();
  }

  void forward(const ForwardCall& call) override {
    if (memory_.alias) return;
    forward_.run(context_.engine, call.inputs[0], call.output, call.workspace);
  }

  void backward(const BackwardCall& call) override {
    if (memory_.alias || !wants_gradient(0)) return;
    backward_.run(context_.engine, call.output_gradient, call.input_gradients[0], call.workspace);
  }

 private:
  Reorder forward_;
  Reorder backward_;
};

}  // namespace

std::unique_ptr<Op> make_flatten(Context& context, const OpRequest& request) {
  const Shape& shape = request.inputs[0].shape;
  return std::make_unique<ToPlain>(context, request, Shape{shape[0], shape.elements_from(1)});
}

std::unique_ptr<Op> make_to_plain(Context& context, const OpRequest& request) {
  return std::make_unique<ToPlain>(context, request, request.inputs[0].shape);
}

}  // namespace annulus::cpu
