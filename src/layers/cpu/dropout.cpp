// SPDX-License-Identifier: Apache-2.0
// The mask is drawn again for backward rather than kept: it is a function of seed, layer, sample,
// iteration and element.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/cpu/parallel.h"
#include "core/rng.h"
#include "layers/cpu/make_ops.h"

namespace annulus::cpu {
namespace {

// Elements of a sample that follow each other in the logical layout, `stride` apart in memory.
struct Run {
  std::int64_t sample = 0;
  std::int64_t element = 0;
  std::int64_t count = 0;
  std::int64_t offset = 0;
  std::int64_t stride = 1;
};

class Dropout final : public CpuOp {
 public:
  Dropout(Context& context, const OpRequest& request, const DropoutDesc& desc)
      : CpuOp(context, request, request.inputs[0]),
        random_(request.seed, RandomUse::dropout, request.name),
        view_(channel_view(output_)),
        plain_(format_of(output_) == Format::plain),
        // uniform >= rate, said of the 24 bits that uniform is made of: exact.
        threshold_(static_cast<std::uint32_t>(std::ceil(desc.rate * 0x1p24))),
        scale_(static_cast<float>(1 / (1 - desc.rate))) {
    memory_.alias = !training();
    memory_.forward_in_place = true;
    memory_.backward_in_place = true;
  }

  void forward(const ForwardCall& call) override {
    if (training()) apply(call.inputs[0], call.output, call.step);
  }

  void backward(const BackwardCall& call) override {
    if (wants_gradient(0)) apply(call.output_gradient, call.input_gradients[0], call.step);
  }

 private:
  void apply(const float* from, float* to, const StepContext& step) const {
    if (plain_) {
      apply_plain(from, to, step);
    } else {
      apply_by_channel(from, to, step);
      clear_padding(view_, to);
    }
  }

  void apply_plain(const float* from, float* to, const StepContext& step) const {
    // Pieces of whole Philox blocks, so that threads need not draw the same one.
    constexpr std::int64_t piece = 4096;
    const std::int64_t elements = output_.shape.elements_from(1);
    const std::int64_t pieces = (elements + piece - 1) / piece;
    parallel_for(output_.shape[0] * pieces, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t sample = i / pieces;
        const std::int64_t element = i % pieces * piece;
        const std::int64_t count = std::min(piece, elements - element);
        drop({sample, element, count, sample * elements + element, 1}, from, to, step);
      }
    });
  }

  void apply_by_channel(const float* from, float* to, const StepContext& step) const {
    parallel_for(view_.images * view_.groups, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t image = i / view_.groups;
        const std::int64_t group = i % view_.groups;
        const std::int64_t offset = view_.offset(image, group);
        for (int lane = 0; lane < view_.channel_lanes(group); ++lane) {
          const std::int64_t channel = group * view_.lanes + lane;
          drop({image, channel * view_.positions, view_.positions, offset + lane,
                view_.position_stride},
               from, to, step);
        }
      }
    });
  }

  void drop(const Run& run, const float* from, float* to, const StepContext& step) const {
    const auto sample = static_cast<std::uint64_t>(step.samples[run.sample]);
    const auto iteration = static_cast<std::uint64_t>(step.iteration);
    std::array<std::uint32_t, 4> numbers{};
    for (std::int64_t i = 0; i < run.count; ++i) {
      const std::int64_t element = run.element + i;
      if (i == 0 || element % 4 == 0) {
        numbers = random_.block(static_cast<std::uint32_t>(element / 4), sample, iteration);
      }
      const std::int64_t at = run.offset + i * run.stride;
      to[at] = (numbers[element % 4] >> 8) >= threshold_ ? from[at] * scale_ : 0.0F;
    }
  }

  RandomStream random_;
  ChannelView view_;
  bool plain_;
  std::uint32_t threshold_;
  float scale_;
};

}  // namespace

std::unique_ptr<Op> make_dropout(Context& context, const OpRequest& request,
                                 const DropoutDesc& desc) {
  return std::make_unique<Dropout>(context, request, desc);
}

}  // namespace annulus::cpu
