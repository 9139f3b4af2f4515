// SPDX-License-Identifier: Apache-2.0
// Own code in whatever layout the input has, with add and ReLU in the same passes: oneDNN's batch
// norm would need two more passes over memory for them.
#include <cmath>

#include "core/cpu/parallel.h"
#include "layers/cpu/batch_norm_kernels.h"
#include "layers/cpu/lanes.h"
#include "layers/cpu/make_ops.h"

namespace annulus::cpu {
namespace {

// A batch of features is one image whose positions are the samples.
ChannelView batch_view(const ValueType& value) {
  ChannelView view = channel_view(value);
  if (view.positions == 1 && !view.padded) {
    view.positions = view.images;
    view.position_stride = view.image_stride;
    view.images = 1;
  }
  return view;
}

// Outputs that no cache keeps until the next layer reads them.
constexpr std::size_t beyond_caches = std::size_t{16} << 20;

class BatchNorm final : public CpuOp {
 public:
  BatchNorm(Context& context, const OpRequest& request, const BatchNormDesc& desc)
      : CpuOp(context, request, request.inputs[0]),
        desc_(desc),
        view_(batch_view(output_)),
        mask_(!desc.relu ? Mask::none
              : desc.add ? Mask::output
                         : Mask::input),
        streams_(training() && output_.bytes() >= beyond_caches) {
    const auto channels = static_cast<std::size_t>(view_.channels);
    const auto planes = static_cast<std::size_t>(view_.images * view_.groups);
    WorkspacePlan forward;
    moments_ = forward.add(training() ? planes * sizeof(Moments) : 0);
    inverse_ = forward.add(training() ? 0 : channels * sizeof(float));
    if (desc.add) {
      add_ = InputReorder(context.engine, desc_of(request.inputs[1]), desc_of(output_), forward);
    }
    memory_.forward_workspace = forward.bytes();
    memory_.forward_in_place = !training();
    if (training()) plan_backward(channels, planes);
  }

  void forward(const ForwardCall& call) override {
    const float* add = nullptr;
    if (desc_.add) {
      add = static_cast<const float*>(add_.run(context_.engine, call.inputs[1], call.workspace));
    }
    if (training()) {
      train(call, add);
    } else {
      evaluate(call, add);
    }
  }

  void backward(const BackwardCall& call) override {
    auto* sums = reinterpret_cast<GradientSums*>(call.workspace + sums_);
    float* masked =
        wants_gradient_of_add()
            ? static_cast<float*>(masked_.target(call.input_gradients[1], call.workspace))
            : nullptr;
    const auto reduce = [&](std::int64_t group, std::int64_t image) {
      const std::int64_t offset = view_.offset(image, group);
      sums[plane(group, image)] =
          gradient_sums(gradient_plane(call, offset), masked == nullptr ? nullptr : masked + offset,
                        rows_of(view_, group), saved_norm(call, group), mask_);
    };
    const auto apply = [&](std::int64_t group, std::int64_t image) {
      input_gradient(call, masked, group, image);
    };
    two_passes(
        reduce, [&](std::int64_t group) { finish_backward(call, group); }, apply);
    if (masked != nullptr) masked_.run(context_.engine, call.input_gradients[1], call.workspace);
  }

 private:
  bool wants_gradient_of_add() const { return desc_.add && wants_gradient(1); }
  std::size_t plane(std::int64_t group, std::int64_t image) const {
    return static_cast<std::size_t>(group * view_.images + image);
  }

  void plan_backward(std::size_t channels, std::size_t planes) {
    memory_.saved = 2 * channels * sizeof(float);
    memory_.backward_reads_input[0] = true;
    memory_.backward_reads_output = mask_ == Mask::output;
    memory_.backward_in_place = true;
    WorkspacePlan plan;
    sums_ = plan.add(planes * sizeof(GradientSums));
    slopes_ = plan.add(2 * channels * sizeof(float));
    if (wants_gradient_of_add()) {
      masked_ = OutputReorder(context_.engine, desc_of(output_), desc_of(request_.inputs[1]), plan);
    }
    memory_.backward_workspace = plan.bytes();
  }

  // Calls reduce(group, image) for all, then finish(group), then apply(group, image). With enough
  // groups each thread does all of a group, whose values are still near when it applies, last image
  // first; else the images are split too. The results are the same.
  template <class Reduce, class Finish, class Apply>
  void two_passes(const Reduce& reduce, const Finish& finish, const Apply& apply) const {
    const std::int64_t images = view_.images;
    const int threads = parallel_threads();
    if (view_.groups % threads == 0 || view_.groups >= std::int64_t{4} * threads) {
      parallel_for(view_.groups, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t group = begin; group < end; ++group) {
          for (std::int64_t image = 0; image < images; ++image) reduce(group, image);
          finish(group);
          for (std::int64_t image = images; image-- > 0;) apply(group, image);
        }
        fence_stores();
      });
      return;
    }
    for_each_plane(reduce);
    for (std::int64_t group = 0; group < view_.groups; ++group) finish(group);
    for_each_plane(apply);
  }

  template <class F>
  void for_each_plane(const F& f) const {
    parallel_for(view_.groups * view_.images, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) f(i / view_.images, i % view_.images);
      fence_stores();
    });
  }

  void train(const ForwardCall& call, const float* add) {
    auto* moments = reinterpret_cast<Moments*>(call.workspace + moments_);
    auto* mean = reinterpret_cast<float*>(call.saved);
    float* inverse = mean + view_.channels;
    two_passes(
        [&](std::int64_t group, std::int64_t image) {
          moments[plane(group, image)] =
              plane_moments(call.inputs[0] + view_.offset(image, group), rows_of(view_, group));
        },
        [&](std::int64_t group) { finish_statistics(call, moments, mean, inverse, group); },
        [&](std::int64_t group, std::int64_t image) {
          normalize(call, add, mean, inverse, group, image);
        });
  }

  void evaluate(const ForwardCall& call, const float* add) {
    auto* inverse = reinterpret_cast<float*>(call.workspace + inverse_);
    for (std::int64_t c = 0; c < view_.channels; ++c) {
      inverse[c] = static_cast<float>(1 / std::sqrt(call.running[1][c] + desc_.epsilon));
    }
    for_each_plane([&](std::int64_t group, std::int64_t image) {
      normalize(call, add, call.running[0], inverse, group, image);
    });
  }

  void normalize(const ForwardCall& call, const float* add, const float* mean, const float* inverse,
                 std::int64_t group, std::int64_t image) const {
    const std::int64_t offset = view_.offset(image, group);
    normalize_plane(call.inputs[0] + offset, add == nullptr ? nullptr : add + offset,
                    call.output + offset, rows_of(view_, group),
                    norm(call.parameters, mean, inverse, group), desc_.relu, streams_);
  }

  void finish_statistics(const ForwardCall& call, const Moments* moments, float* mean,
                         float* inverse, std::int64_t group) const {
    Moments all;
    for (std::int64_t image = 0; image < view_.images; ++image) {
      all.merge(moments[plane(group, image)]);
    }
    // Running statistics move once a step by the mean over all nodes that share them.
    const double weight = static_cast<double>(output_.shape[0]) / request_.uses;
    for (int lane = 0; lane < view_.channel_lanes(group); ++lane) {
      const std::int64_t c = group * view_.lanes + lane;
      const double unbiased = all.count > 1 ? all.squares[lane] / (all.count - 1) : 0;
      mean[c] = static_cast<float>(all.mean[lane]);
      inverse[c] = static_cast<float>(1 / std::sqrt(all.squares[lane] / all.count + desc_.epsilon));
      call.batch_sums[0][c] = static_cast<float>(weight * all.mean[lane]);
      call.batch_sums[1][c] = static_cast<float>(weight * unbiased);
    }
  }

  LaneNorm norm(std::span<const float* const> parameters, const float* mean, const float* inverse,
                std::int64_t group) const {
    LaneNorm lanes{lane_values(view_, group, mean), lane_values(view_, group, parameters[0]),
                   lane_values(view_, group, parameters[1])};
    const LaneValues deviation = lane_values(view_, group, inverse);
    for (std::size_t l = 0; l < deviation.size(); ++l) lanes.factor[l] *= deviation[l];
    return lanes;
  }

  LaneNorm saved_norm(const BackwardCall& call, std::int64_t group) const {
    const auto* mean = reinterpret_cast<const float*>(call.saved);
    return norm(call.parameters, mean, mean + view_.channels, group);
  }

  static GradientPlane gradient_plane(const BackwardCall& call, std::int64_t offset) {
    return {call.inputs[0] + offset, call.output == nullptr ? nullptr : call.output + offset,
            call.output_gradient + offset};
  }

  // Gradients of scale and shift, and what the input's gradient needs of the sums.
  void finish_backward(const BackwardCall& call, std::int64_t group) const {
    const auto* sums = reinterpret_cast<const GradientSums*>(call.workspace + sums_);
    auto* mean_gradient = reinterpret_cast<float*>(call.workspace + slopes_);
    float* slope = mean_gradient + view_.channels;
    const auto* inverse = reinterpret_cast<const float*>(call.saved) + view_.channels;
    const auto count = static_cast<double>(view_.images * view_.positions);
    for (int lane = 0; lane < view_.channel_lanes(group); ++lane) {
      const std::int64_t c = group * view_.lanes + lane;
      double gradient = 0;
      double product = 0;
      for (std::int64_t image = 0; image < view_.images; ++image) {
        gradient += sums[plane(group, image)].gradient[lane];
        product += sums[plane(group, image)].product[lane];
      }
      const double deviation = inverse[c];
      call.parameter_gradients[0][c] = static_cast<float>(product * deviation);
      call.parameter_gradients[1][c] = static_cast<float>(gradient);
      mean_gradient[c] = static_cast<float>(gradient / count);
      slope[c] = static_cast<float>(product * deviation * deviation / count);
    }
  }

  void input_gradient(const BackwardCall& call, const float* masked, std::int64_t group,
                      std::int64_t image) const {
    if (!wants_gradient(0)) return;
    const std::int64_t offset = view_.offset(image, group);
    const auto* mean_gradient = reinterpret_cast<const float*>(call.workspace + slopes_);
    GradientPlane gradients = gradient_plane(call, offset);
    if (masked != nullptr) gradients.output_gradient = masked + offset;
    input_gradient_plane(gradients, call.input_gradients[0] + offset, rows_of(view_, group),
                         saved_norm(call, group), lane_values(view_, group, mean_gradient),
                         lane_values(view_, group, mean_gradient + view_.channels),
                         masked != nullptr ? Mask::none : mask_);
  }

  BatchNormDesc desc_;
  ChannelView view_;
  Mask mask_;
  bool streams_;
  InputReorder add_;
  OutputReorder masked_;
  std::size_t moments_ = 0;
  std::size_t inverse_ = 0;
  std::size_t sums_ = 0;
  std::size_t slopes_ = 0;
};

}  // namespace

std::unique_ptr<Op> make_batch_norm(Context& context, const OpRequest& request,
                                    const BatchNormDesc& desc) {
  return std::make_unique<BatchNorm>(context, request, desc);
}

}  // namespace annulus::cpu
