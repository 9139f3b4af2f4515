// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <string_view>

#include "core/error.h"
#include "layers/cpu/make_ops.h"

namespace annulus::cpu {
namespace {

using Forward = dnnl::convolution_forward;
using BackwardData = dnnl::convolution_backward_data;
using BackwardWeights = dnnl::convolution_backward_weights;

// The numbers of a convolution as oneDNN counts them: its dilation is 0 where ours is 1.
struct Geometry {
  Dims source, weight, bias, result;
  Dims strides, dilates, padding_low, padding_high;
};

Geometry geometry_of(const Shape& in, const Conv2dDesc& d) {
  const auto extent = [](std::int64_t size, std::int64_t kernel, std::int64_t stride,
                         std::int64_t dilation, std::int64_t padding) {
    return (size + padding - (kernel - 1) * dilation - 1) / stride + 1;
  };
  const std::int64_t h =
      extent(in[2], d.kernel.h, d.stride.h, d.dilation.h, d.padding.top + d.padding.bottom);
  const std::int64_t w =
      extent(in[3], d.kernel.w, d.stride.w, d.dilation.w, d.padding.left + d.padding.right);
  Geometry g;
  g.source = dims_of(in);
  g.weight = {d.out_channels, in[1] / d.groups, d.kernel.h, d.kernel.w};
  if (d.groups > 1) {
    g.weight = {d.groups, d.out_channels / d.groups, in[1] / d.groups, d.kernel.h, d.kernel.w};
  }
  g.bias = {d.out_channels};
  g.result = {in[0], d.out_channels, h, w};
  g.strides = {d.stride.h, d.stride.w};
  g.dilates = {d.dilation.h - 1, d.dilation.w - 1};
  // oneDNN wants the last window to end exactly: what floor leaves over is negative padding.
  const auto high = [](std::int64_t size, std::int64_t out, std::int64_t kernel,
                       std::int64_t stride, std::int64_t dilation, std::int64_t low) {
    return (out - 1) * stride + (kernel - 1) * dilation + 1 - size - low;
  };
  g.padding_low = {d.padding.top, d.padding.left};
  g.padding_high = {high(in[2], h, d.kernel.h, d.stride.h, d.dilation.h, d.padding.top),
                    high(in[3], w, d.kernel.w, d.stride.w, d.dilation.w, d.padding.left)};
  return g;
}

// For which passes Winograd's F(4x4, 3x3), which oneDNN has for dense 3x3 convolutions of stride 1
// on AVX-512 (versions before 3), is faster than the direct form. A function of the shape alone, so
// that a shard has the same bits wherever it is computed: a trial could turn out otherwise on each
// start. Its cost beside the products is the transformed weights, in each call, and tiles that the
// edge leaves half empty; the limits are read off the table of bench/winograd.cpp.
struct WinogradPays {
  bool forward_and_data = false;
  bool weights = false;
};

WinogradPays winograd_pays(const Geometry& g) {
  if (g.weight.size() != 4 || g.weight[2] != 3 || g.weight[3] != 3 || g.strides != Dims{1, 1} ||
      g.dilates != Dims{0, 0} || g.padding_low != Dims{1, 1} || g.padding_high != Dims{1, 1}) {
    return {};
  }
  const auto tiles_along = [](std::int64_t extent) { return (extent + 3) / 4; };
  const std::int64_t tiles = g.result[0] * tiles_along(g.result[2]) * tiles_along(g.result[3]);
  const std::int64_t channels = std::min(g.weight[0], g.weight[1]);
  const bool all = channels >= 32 && tiles >= 48;
  return {all, all || (channels >= 16 && tiles >= 512)};
}

// Whether an implementation is one of the fast ones, which are worth a given layout.
bool is_direct(std::string_view implementation) {
  return implementation.find("ref") == std::string_view::npos &&
         implementation.find("gemm") == std::string_view::npos;
}

// A folded norm moves to the weights and the bias.
bool has_bias(const Conv2dDesc& desc) {
  return desc.bias || desc.tail.norm_epsilon.has_value();
}

dnnl::primitive_attr attributes_of(const Conv2dTail& tail) {
  dnnl::post_ops steps;
  if (tail.add) steps.append_sum();
#if DNNL_VERSION_MAJOR >= 3
  if (tail.relu) steps.append_eltwise(dnnl::algorithm::eltwise_relu, 0, 0);
#else
  if (tail.relu) steps.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
#endif
  dnnl::primitive_attr attributes = user_scratchpad();
  attributes.set_post_ops(steps);
  return attributes;
}

// Descriptors of the three passes. Winograd's form is taken where it pays and fits the layouts that
// are there. Else oneDNN first chooses all layouts; where its choice would need a reorder of
// activations, it is asked again with the layouts that are there, and that is taken if it is not a
// slow fall-back.
class Chooser {
 public:
  Chooser(const Context& context, const Geometry& geometry, const Conv2dDesc& desc, bool training)
      : engine_(context.engine), g_(geometry), tail_(attributes_of(desc.tail)) {
    if (has_bias(desc)) bias_ = plain_desc(g_.bias);
    kind_ = training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
    if (context.options.winograd) winograd_ = winograd_pays(g_);
  }

  Forward::primitive_desc forward(const Desc& source) const {
    const auto make = [&](dnnl::algorithm algorithm, const Desc& src) {
      return forward_desc_with<Forward>(engine_, tail_, kind_, algorithm, src, any_desc(g_.weight),
                                        bias_, any_desc(g_.result), g_.strides, g_.dilates,
                                        g_.padding_low, g_.padding_high);
    };
    const auto fits = [&](const Forward::primitive_desc& desc) {
      return same_memory(desc.src_desc(), source) && format_of(desc.dst_desc());
    };
    if (winograd_.forward_and_data) {
      const auto attempt = [&] { return make(winograd, any_desc(g_.source)); };
      if (auto desc = try_winograd(attempt, fits)) return *desc;
    }
    auto free = make(direct, any_desc(g_.source));
    if (fits(free)) return free;
    return better(
        free, [&] { return make(direct, source); },
        [](const auto& desc) { return format_of(desc.dst_desc()).has_value(); });
  }

  BackwardData::primitive_desc data(const Forward::primitive_desc& hint, const Desc& source,
                                    const Desc& result) const {
    const auto make = [&](dnnl::algorithm algorithm, const Desc& diff_source,
                          const Desc& diff_result) {
      return backward_desc<BackwardData>(engine_, hint, algorithm, diff_source, any_desc(g_.weight),
                                         diff_result, g_.strides, g_.dilates, g_.padding_low,
                                         g_.padding_high);
    };
    const auto fits = [&](const BackwardData::primitive_desc& desc) {
      return same_memory(desc.diff_src_desc(), source) && same_memory(desc.diff_dst_desc(), result);
    };
    return choose<BackwardData::primitive_desc>(winograd_.forward_and_data, make, source, result,
                                                fits);
  }

  BackwardWeights::primitive_desc weights(const Forward::primitive_desc& hint, const Desc& source,
                                          const Desc& result) const {
    const auto make = [&](dnnl::algorithm algorithm, const Desc& src, const Desc& diff_result) {
      return backward_desc<BackwardWeights>(engine_, hint, algorithm, src, any_desc(g_.weight),
                                            bias_, diff_result, g_.strides, g_.dilates,
                                            g_.padding_low, g_.padding_high);
    };
    const auto fits = [&](const BackwardWeights::primitive_desc& desc) {
      return same_memory(desc.src_desc(), source) && same_memory(desc.diff_dst_desc(), result);
    };
    return choose<BackwardWeights::primitive_desc>(winograd_.weights, make, source, result, fits);
  }

 private:
  static constexpr auto direct = dnnl::algorithm::convolution_direct;
  static constexpr auto winograd = dnnl::algorithm::convolution_winograd;

  template <class PrimitiveDesc, class Make, class Fits>
  PrimitiveDesc choose(bool winograd_pays, const Make& make, const Desc& source, const Desc& result,
                       const Fits& fits) const {
    const auto free_layouts = [&](dnnl::algorithm algorithm) {
      return make(algorithm, any_desc(g_.source), any_desc(g_.result));
    };
    if (winograd_pays) {
      if (auto desc = try_winograd([&] { return free_layouts(winograd); }, fits)) return *desc;
    }
    PrimitiveDesc free = free_layouts(direct);
    if (fits(free)) return free;
    return better(
        free, [&] { return make(direct, source, result); }, [](const auto&) { return true; });
  }

  // Nothing where it is not offered, or does not fit.
  template <class Make, class Fits>
  static auto try_winograd(const Make& make, const Fits& fits) -> std::optional<decltype(make())> {
    try {
      auto desc = make();
      if (fits(desc)) return desc;
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented) throw;
    }
    return std::nullopt;
  }

  template <class PrimitiveDesc, class Make, class Accept>
  static PrimitiveDesc better(const PrimitiveDesc& free, const Make& make, const Accept& accept) {
    try {
      PrimitiveDesc given = make();
      if (is_direct(given.impl_info_str()) && accept(given)) return given;
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented) throw;
    }
    return free;
  }

  const Engine& engine_;
  const Geometry& g_;
  dnnl::primitive_attr tail_;
  Desc bias_;
  dnnl::prop_kind kind_;
  WinogradPays winograd_;
};

class Conv2d final : public CpuOp {
 public:
  Conv2d(Context& context, const OpRequest& request, const Geometry& geometry,
         const Conv2dDesc& description, const Chooser& chooser,
         const Forward::primitive_desc& forward)
      : CpuOp(context, request,
              make_value(Shape(std::span<const std::int64_t>(geometry.result)),
                         format_of(forward.dst_desc()).value_or(Format::plain))),
        bias_(description.bias),
        tail_(description.tail),
        implementation_(forward.impl_info_str()) {
    const Desc& source = desc_of(request.inputs[0]);
    const Desc kept = context.kept.keep(request.parameters[0], plain_desc(geometry.weight),
                                        forward.weights_desc());
    prepare_forward(forward, geometry, source, kept);
    if (!training()) return;
    memory_.backward_reads_input[0] = true;
    WorkspacePlan plan;
    prepare_weights(chooser.weights(forward, source, desc_of(output_)), source, kept, plan);
    if (wants_gradient(0)) {
      prepare_data(chooser.data(forward, source, desc_of(output_)), source, kept, plan);
    }
    memory_.backward_workspace = plan.bytes();
  }

  void forward(const ForwardCall& call) override {
    const void* source = source_.run(context_.engine, call.inputs[0], call.workspace);
    const Weights weights = weights_of(call);
    void* result = result_.target(call.output, call.workspace);
    // The primitive adds to what is there already.
    if (tail_.add && result != call.inputs[1]) {
      add_.run(context_.engine, call.inputs[1], result, call.workspace);
    }
    forward_.run(context_.engine,
                 {source, weights.weight, weights.bias, result, call.workspace + scratchpad_});
    result_.run(context_.engine, call.output, call.workspace);
  }

  void backward(const BackwardCall& call) override {
    if (wants_gradient(0)) backward_data(call);
    backward_weights(call);
  }

  std::string implementation() const override { return implementation_; }

 private:
  struct Weights {
    const void* weight;
    const void* bias;
  };

  Weights weights_of(const ForwardCall& call) {
    const std::int64_t version = call.step.weights_version;
    if (folded_) {
      folded_->update(call.parameters, call.running, version, call.workspace + fold_);
      return {folded_->weight(), folded_->bias()};
    }
    return {weight_->get(call.parameters[0], version), bias_ ? call.parameters[1] : nullptr};
  }

  void prepare_forward(const Forward::primitive_desc& desc, const Geometry& geometry,
                       const Desc& source, const Desc& kept) {
    WorkspacePlan plan;
    source_ = InputReorder(context_.engine, source, desc.src_desc(), plan);
    result_ = OutputReorder(context_.engine, desc.dst_desc(), desc_of(output_), plan);
    if (tail_.norm_epsilon) {
      folded_ = context_.folded.get({request_.parameters[0], plain_desc(geometry.weight), kept,
                                     desc.weights_desc(), geometry.bias[0], bias_},
                                    *tail_.norm_epsilon);
      fold_ = plan.add(folded_->workspace());
    } else {
      weight_ = context_.weights.get(request_.parameters[0], kept, desc.weights_desc());
    }
    if (tail_.add) {
      const Desc& addend = desc_of(request_.inputs[1]);
      add_ = Reorder(context_.engine, addend, desc.dst_desc(), plan);
      memory_.forward_in_place =
          same_memory(addend, desc.dst_desc()) && same_memory(addend, desc_of(output_));
      memory_.in_place_input = 1;
    }
    scratchpad_ = plan.add(desc.scratchpad_desc().get_size());
    forward_ = Call(context_.engine, Forward(desc),
                    {{DNNL_ARG_SRC, desc.src_desc()},
                     {DNNL_ARG_WEIGHTS, desc.weights_desc()},
                     {DNNL_ARG_BIAS, bias_ || folded_ ? desc.bias_desc() : no_desc()},
                     {DNNL_ARG_DST, desc.dst_desc()},
                     {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}});
    memory_.forward_workspace = plan.bytes();
  }

  void prepare_data(const BackwardData::primitive_desc& desc, const Desc& source, const Desc& kept,
                    WorkspacePlan& plan) {
    data_result_ = InputReorder(context_.engine, desc_of(output_), desc.diff_dst_desc(), plan);
    data_source_ = OutputReorder(context_.engine, desc.diff_src_desc(), source, plan);
    data_weight_ = context_.weights.get(request_.parameters[0], kept, desc.weights_desc());
    data_scratchpad_ = plan.add(desc.scratchpad_desc().get_size());
    data_ = Call(context_.engine, BackwardData(desc),
                 {{DNNL_ARG_DIFF_DST, desc.diff_dst_desc()},
                  {DNNL_ARG_WEIGHTS, desc.weights_desc()},
                  {DNNL_ARG_DIFF_SRC, desc.diff_src_desc()},
                  {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}});
  }

  void prepare_weights(const BackwardWeights::primitive_desc& desc, const Desc& source,
                       const Desc& kept, WorkspacePlan& plan) {
    weights_source_ = InputReorder(context_.engine, source, desc.src_desc(), plan);
    weights_result_ = InputReorder(context_.engine, desc_of(output_), desc.diff_dst_desc(), plan);
    weights_gradient_ = OutputReorder(context_.engine, desc.diff_weights_desc(), kept, plan);
    weights_scratchpad_ = plan.add(desc.scratchpad_desc().get_size());
    weights_ = Call(context_.engine, BackwardWeights(desc),
                    {{DNNL_ARG_SRC, desc.src_desc()},
                     {DNNL_ARG_DIFF_DST, desc.diff_dst_desc()},
                     {DNNL_ARG_DIFF_WEIGHTS, desc.diff_weights_desc()},
                     {DNNL_ARG_DIFF_BIAS, bias_ ? desc.diff_bias_desc() : no_desc()},
                     {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}});
  }

  void backward_data(const BackwardCall& call) {
    const void* result = data_result_.run(context_.engine, call.output_gradient, call.workspace);
    const void* weight = data_weight_->get(call.parameters[0], call.step.weights_version);
    float* gradient = call.input_gradients[0];
    data_.run(context_.engine, {result, weight, data_source_.target(gradient, call.workspace),
                                call.workspace + data_scratchpad_});
    data_source_.run(context_.engine, gradient, call.workspace);
  }

  void backward_weights(const BackwardCall& call) {
    const void* source = weights_source_.run(context_.engine, call.inputs[0], call.workspace);
    const void* result = weights_result_.run(context_.engine, call.output_gradient, call.workspace);
    float* gradient = call.parameter_gradients[0];
    const void* bias = bias_ ? call.parameter_gradients[1] : nullptr;
    weights_.run(context_.engine,
                 {source, result, weights_gradient_.target(gradient, call.workspace), bias,
                  call.workspace + weights_scratchpad_});
    weights_gradient_.run(context_.engine, gradient, call.workspace);
  }

  bool bias_;
  Conv2dTail tail_;
  std::string implementation_;

  InputReorder source_;
  OutputReorder result_;
  std::shared_ptr<PackedWeight> weight_;
  std::shared_ptr<FoldedNorm> folded_;  // instead, where a norm is folded in
  std::size_t fold_ = 0;
  Reorder add_;
  Call forward_;
  std::size_t scratchpad_ = 0;

  InputReorder data_result_;
  OutputReorder data_source_;
  std::shared_ptr<PackedWeight> data_weight_;
  Call data_;
  std::size_t data_scratchpad_ = 0;

  InputReorder weights_source_;
  InputReorder weights_result_;
  OutputReorder weights_gradient_;
  Call weights_;
  std::size_t weights_scratchpad_ = 0;
};

}  // namespace

std::unique_ptr<Op> make_conv2d(Context& context, const OpRequest& request,
                                const Conv2dDesc& desc) {
  if (auto own = make_winograd_conv2d(context, request, desc)) return own;
  const Geometry geometry = geometry_of(request.inputs[0].shape, desc);
  const Chooser chooser(context, geometry, desc, request.mode == Mode::train);
  const auto forward = chooser.forward(desc_of(request.inputs[0]));
  return std::make_unique<Conv2d>(context, request, geometry, desc, chooser, forward);
}

}  // namespace annulus::cpu
