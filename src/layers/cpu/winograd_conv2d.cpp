// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "core/cpu/parallel.h"
#include "layers/cpu/make_ops.h"
#include "layers/cpu_isa.h"

namespace annulus::cpu {
namespace {

// (in, out) of each tap lie side by side, as the transforms read and write them.
Desc weight_desc(const WinogradShape& shape) {
  return {
      {shape.out, shape.in, 3, 3}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::hwio};
}

Desc plain_weight(const WinogradShape& shape) {
  return plain_desc({shape.out, shape.in, 3, 3});
}

// The sum of a value over images and positions, by channel: the gradient of a bias.
void sum_by_channel(const ChannelView& view, const float* values, float* sums) {
  parallel_for(view.groups, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t group = begin; group < end; ++group) {
      float* const own = sums + group * view.lanes;
      std::fill_n(own, view.lanes, 0.0F);
      for (std::int64_t image = 0; image < view.images; ++image) {
        const float* from = values + view.offset(image, group);
        for (std::int64_t p = 0; p < view.positions; ++p, from += view.position_stride) {
          for (int lane = 0; lane < view.lanes; ++lane) own[lane] += from[lane];
        }
      }
    }
  });
}

class WinogradConv2d final : public CpuOp {
 public:
  WinogradConv2d(Context& context, const OpRequest& request, const Conv2dDesc& desc,
                 const WinogradShape& shape)
      : CpuOp(context, request,
              make_value({shape.images, shape.out, shape.height, shape.width},
                         format_of(request.inputs[0]))),
        shape_(shape),
        bias_(desc.bias),
        tail_(desc.tail) {
    const Desc wanted = weight_desc(shape_);
    const Desc kept = context_.kept.keep(request_.parameters[0], plain_weight(shape_), wanted);
    if (training()) {
      prepare_training(kept);
    } else {
      prepare_evaluation(kept);
    }
  }

  void forward(const ForwardCall& call) override {
    WinogradTail tail;
    tail.relu = tail_.relu;
    const float* transformed = transformed_weight(call, tail);
    if (tail_.add) {
      tail.addend = call.inputs[1];
      if (reorders_addend_) {
        add_.run(context_.engine, call.inputs[1], call.output, call.workspace);
        tail.addend = call.output;
      }
    }
    winograd_convolve(shape_, call.inputs[0], transformed, tail, call.output,
                      call.workspace + scratch_);
  }

  void backward(const BackwardCall& call) override {
    if (wants_gradient(0)) {
      auto* const flipped = reinterpret_cast<float*>(call.workspace);
      winograd_transform_flipped(shape_, weight(call.parameters, call.step), flipped);
      winograd_convolve(shape_.transposed(), call.output_gradient, flipped, {},
                        call.input_gradients[0], call.workspace + winograd_weight_bytes(shape_));
    }
    float* const gradient = call.parameter_gradients[0];
    auto* const own = reinterpret_cast<float*>(gradient_.target(gradient, call.workspace));
    winograd_weight_gradient(shape_, call.inputs[0], call.output_gradient, own,
                             call.workspace + gradient_scratch_);
    gradient_.run(context_.engine, gradient, call.workspace);
    if (bias_)
      sum_by_channel(channel_view(output_), call.output_gradient, call.parameter_gradients[1]);
  }

  std::string implementation() const override { return "winograd:avx2"; }

 private:
  void prepare_training(const Desc& kept) {
    const int threads = parallel_threads();
    weight_ = context_.weights.get(request_.parameters[0], kept, weight_desc(shape_));
    scratch_ = winograd_weight_bytes(shape_);
    memory_.forward_workspace = scratch_ + winograd_workspace(shape_, threads);
    memory_.backward_reads_input[0] = true;
    WorkspacePlan plan;
    gradient_ = OutputReorder(context_.engine, weight_desc(shape_), kept, plan);
    gradient_scratch_ = plan.add(winograd_gradient_workspace(shape_));
    memory_.backward_workspace = plan.bytes();
    if (!wants_gradient(0)) return;
    memory_.backward_workspace =
        std::max(plan.bytes(),
                 winograd_weight_bytes(shape_) + winograd_workspace(shape_.transposed(), threads));
  }

  void prepare_evaluation(const Desc& kept) {
    WorkspacePlan plan;
    const int parameter = request_.parameters[0];
    if (tail_.norm_epsilon) {
      folded_ = context_.folded.get(
          {parameter, plain_weight(shape_), kept, weight_desc(shape_), shape_.out, bias_},
          *tail_.norm_epsilon);
      fold_ = plan.add(folded_->workspace());
    } else {
      weight_ = context_.weights.get(parameter, kept, weight_desc(shape_));
    }
    transformed_ = context_.transformed.get(parameter, shape_);
    if (tail_.add) {
      const Desc& addend = desc_of(request_.inputs[1]);
      reorders_addend_ = !same_memory(addend, desc_of(output_));
      if (reorders_addend_) add_ = Reorder(context_.engine, addend, desc_of(output_), plan);
      memory_.forward_in_place = !reorders_addend_;
      memory_.in_place_input = 1;
    }
    scratch_ = plan.add(winograd_workspace(shape_, parallel_threads()));
    memory_.forward_workspace = plan.bytes();
  }

  const float* weight(std::span<const float* const> parameters, const StepContext& step) {
    return static_cast<const float*>(weight_->get(parameters[0], step.weights_version));
  }

  // Sets the tail's bias too.
  const float* transformed_weight(const ForwardCall& call, WinogradTail& tail) {
    const std::int64_t version = call.step.weights_version;
    if (folded_) {
      folded_->update(call.parameters, call.running, version, call.workspace + fold_);
      tail.bias = folded_->bias();
      return transformed_->get(folded_->weight(), version);
    }
    if (bias_) tail.bias = call.parameters[1];
    const float* const plain = weight(call.parameters, call.step);
    if (transformed_) return transformed_->get(plain, version);
    auto* const own = reinterpret_cast<float*>(call.workspace);
    winograd_transform_weight(shape_, plain, own);
    return own;
  }

  WinogradShape shape_;
  bool bias_;
  Conv2dTail tail_;
  std::shared_ptr<PackedWeight> weight_;
  std::shared_ptr<FoldedNorm> folded_;              // instead, where a norm is folded in
  std::shared_ptr<TransformedWeight> transformed_;  // evaluation
  std::size_t fold_ = 0;
  std::size_t scratch_ = 0;
  bool reorders_addend_ = false;
  Reorder add_;
  OutputReorder gradient_;
  std::size_t gradient_scratch_ = 0;
};

// Whether it is faster than oneDNN's direct convolution: a function of shapes, so that a shard has
// the same bits wherever it is computed. The limits are read off the table of bench/winograd.cpp:
// training transforms the weights anew in each pass, which few tiles do not pay for, and past
// 256 x 256 channels the transformed weights do not fit into the cache.
bool pays(const WinogradShape& shape, Mode mode) {
  const bool large = shape.in * shape.out > std::int64_t{256} * 256;
  if (std::min(shape.in, shape.out) < 32) return false;
  if (mode == Mode::evaluate) return shape.tiles() >= (large ? 8 : 4);
  return shape.tiles() >= (large ? 48 : 24);
}

// The shape of a convolution that this file can do.
std::optional<WinogradShape> shape_of(const OpRequest& request, const Conv2dDesc& desc) {
  const auto is_3x3 = [&] {
    const Padding2d& p = desc.padding;
    return desc.kernel.h == 3 && desc.kernel.w == 3 && desc.stride.h == 1 && desc.stride.w == 1 &&
           desc.dilation.h == 1 && desc.dilation.w == 1 && desc.groups == 1 && p.top == 1 &&
           p.bottom == 1 && p.left == 1 && p.right == 1;
  };
  const int block = block_of(format_of(request.inputs[0]));
  if (!is_3x3() || (block != 8 && block != 16)) return std::nullopt;
  const Shape& in = request.inputs[0].shape;
  const WinogradShape shape{in[0], in[1], desc.out_channels, in[2], in[3], block, block};
  if (shape.in % 16 != 0 || shape.out % 16 != 0) return std::nullopt;
  return shape;
}

}  // namespace

std::unique_ptr<Op> make_winograd_conv2d(Context& context, const OpRequest& request,
                                         const Conv2dDesc& desc) {
  // With AVX-512, oneDNN's own are faster.
  if (!context.options.winograd || !winograd_offered() || effective_cpu_isa() != "avx2") {
    return nullptr;
  }
  const auto shape = shape_of(request, desc);
  if (!shape || !pays(*shape, request.mode)) return nullptr;
  return std::make_unique<WinogradConv2d>(context, request, desc, *shape);
}

}  // namespace annulus::cpu
