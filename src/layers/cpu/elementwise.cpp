// SPDX-License-Identifier: Apache-2.0
// ReLU, sums and gradient accumulation: over the memory as it lies, so that padding stays zero.
#include <algorithm>
#include <optional>
#include <vector>

#include "core/cpu/parallel.h"
#include "layers/cpu/make_ops.h"

namespace annulus::cpu {
namespace {

constexpr std::int64_t grain = 16384;  // elements a thread, below which a thread costs more

std::int64_t stored_elements(const ValueType& value) {
  return static_cast<std::int64_t>(value.bytes() / sizeof(float));
}

template <class F>
void for_each_element(const ValueType& value, const F& f) {
  parallel_for(stored_elements(value), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) f(i);
  });
}

class Relu final : public CpuOp {
 public:
  Relu(Context& context, const OpRequest& request) : CpuOp(context, request, request.inputs[0]) {
    memory_.backward_reads_output = training();
    memory_.forward_in_place = true;
    memory_.backward_in_place = true;
  }

  void forward(const ForwardCall& call) override {
    const float* x = call.inputs[0];
    float* y = call.output;
    for_each_element(output_, [=](std::int64_t i) { y[i] = x[i] < 0 ? 0 : x[i]; });
  }

  void backward(const BackwardCall& call) override {
    if (!wants_gradient(0)) return;
    const float* y = call.output;
    const float* dy = call.output_gradient;
    float* dx = call.input_gradients[0];
    for_each_element(output_, [=](std::int64_t i) { dx[i] = y[i] > 0 ? dy[i] : 0; });
  }
};

// Takes the layout of its first input; the others are reordered where they differ.
class Add final : public CpuOp {
 public:
  Add(Context& context, const OpRequest& request) : CpuOp(context, request, request.inputs[0]) {
    WorkspacePlan forward;
    WorkspacePlan backward;
    for (const ValueType& input : request.inputs) {
      const Desc& desc = desc_of(input);
      inputs_.emplace_back(context.engine, desc, desc_of(output_), forward);
      gradients_.emplace_back();
      if (!same_memory(desc, desc_of(output_))) {
        gradients_.back().emplace(context.engine, desc_of(output_), desc, backward);
      }
    }
    memory_.forward_workspace = forward.bytes();
    memory_.backward_workspace = backward.bytes();
    // With a third input the sum is written before that is read, and it may be the same value.
    memory_.forward_in_place = request.inputs.size() == 2;
    memory_.backward_in_place = true;
  }

  void forward(const ForwardCall& call) override {
    float* y = call.output;
    const float* first = call.inputs[0];
    for (std::size_t i = 1; i < inputs_.size(); ++i) {
      const auto* next = static_cast<const float*>(
          inputs_[i].run(context_.engine, call.inputs[i], call.workspace));
      for_each_element(output_, [=](std::int64_t e) { y[e] = first[e] + next[e]; });
      first = y;
    }
  }

  void backward(const BackwardCall& call) override {
    // The first one last: its gradient may take the memory of the output's.
    for (std::size_t i = gradients_.size(); i-- > 0;) {
      if (wants_gradient(i)) pass_on(call, i);
    }
  }

 private:
  void pass_on(const BackwardCall& call, std::size_t i) {
    float* dx = call.input_gradients[i];
    const float* dy = call.output_gradient;
    if (dx == dy) return;
    if (gradients_[i]) {
      gradients_[i]->run(context_.engine, dy, dx, call.workspace);
    } else {
      for_each_element(output_, [=](std::int64_t e) { dx[e] = dy[e]; });
    }
  }

  std::vector<InputReorder> inputs_;
  std::vector<std::optional<Reorder>> gradients_;  // none: the same layout
};

}  // namespace

std::unique_ptr<Op> make_relu(Context& context, const OpRequest& request) {
  return std::make_unique<Relu>(context, request);
}

std::unique_ptr<Op> make_add(Context& context, const OpRequest& request) {
  return std::make_unique<Add>(context, request);
}

void accumulate(const ValueType& type, float* into, const float* from) {
  for_each_element(type, [=](std::int64_t i) { into[i] += from[i]; });
}

void fill(std::byte* memory, std::size_t bytes, std::uint32_t pattern) {
  auto* words = reinterpret_cast<std::uint32_t*>(memory);
  parallel_for(static_cast<std::int64_t>(bytes / sizeof(pattern)), grain,
               [=](std::int64_t begin, std::int64_t end) {
                 std::fill(words + begin, words + end, pattern);
               });
}

}  // namespace annulus::cpu
