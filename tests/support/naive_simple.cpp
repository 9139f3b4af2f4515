// SPDX-License-Identifier: Apache-2.0
// Operations element by element, and those that only move data.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/rng.h"
#include "support/naive_op.h"

namespace annulus::naive {
namespace {

class Relu final : public NaiveOp {
 public:
  explicit Relu(const OpRequest& request) : NaiveOp(request, request.inputs[0].shape) {
    memory_.backward_reads_output = true;
    memory_.forward_in_place = true;
    memory_.backward_in_place = true;
  }
  void forward(const ForwardCall& call) override {
    for (std::int64_t i = 0; i < in_.elements(); ++i) {
      const float x = call.inputs[0][i];
      call.output[i] = x < 0 ? 0 : x;
    }
  }
  void backward(const BackwardCall& call) override {
    for (std::int64_t i = 0; i < in_.elements(); ++i) {
      call.input_gradients[0][i] = call.output[i] > 0 ? call.output_gradient[i] : 0;
    }
  }
};

class Dropout final : public NaiveOp {
 public:
  Dropout(const OpRequest& request, const DropoutDesc& desc)
      : NaiveOp(request, request.inputs[0].shape),
        rate_(desc.rate),
        random_(request.seed, RandomUse::dropout, request.name) {
    memory_.alias = !training();
    memory_.forward_in_place = true;
    memory_.backward_in_place = true;
  }
  void forward(const ForwardCall& call) override { drop(call.inputs[0], call.output, call.step); }
  void backward(const BackwardCall& call) override {
    drop(call.output_gradient, call.input_gradients[0], call.step);
  }

 private:
  void drop(const float* from, float* to, const StepContext& step) const {
    const std::int64_t size = in_.elements() / in_.n;
    for (std::int64_t n = 0; n < in_.n; ++n) {
      const auto sample = static_cast<std::uint64_t>(step.samples[static_cast<std::size_t>(n)]);
      for (std::int64_t e = 0; e < size; ++e) {
        const double draw = random_.uniform(static_cast<std::uint64_t>(e), sample,
                                            static_cast<std::uint64_t>(step.iteration));
        const std::int64_t i = n * size + e;
        to[i] = draw >= rate_ ? static_cast<float>(from[i] / (1 - rate_)) : 0;
      }
    }
  }

  double rate_;
  RandomStream random_;
};

class Softmax final : public NaiveOp {
 public:
  explicit Softmax(const OpRequest& request) : NaiveOp(request, request.inputs[0].shape) {
    memory_.backward_reads_output = true;
  }
  void forward(const ForwardCall& call) override {
    for_each([&](std::int64_t start) {
      double top = -std::numeric_limits<double>::infinity();
      double sum = 0;
      for_channels(start, [&](std::int64_t i) { top = std::max<double>(top, call.inputs[0][i]); });
      for_channels(start, [&](std::int64_t i) { sum += std::exp(call.inputs[0][i] - top); });
      for_channels(start, [&](std::int64_t i) {
        call.output[i] = static_cast<float>(std::exp(call.inputs[0][i] - top) / sum);
      });
    });
  }
  void backward(const BackwardCall& call) override {
    for_each([&](std::int64_t start) {
      double dot = 0;
      for_channels(start, [&](std::int64_t i) {
        dot += static_cast<double>(call.output[i]) * call.output_gradient[i];
      });
      for_channels(start, [&](std::int64_t i) {
        call.input_gradients[0][i] =
            static_cast<float>(call.output[i] * (call.output_gradient[i] - dot));
      });
    });
  }

 private:
  template <class F>
  void for_each(F&& f) const {
    for (std::int64_t n = 0; n < in_.n; ++n) {
      for (std::int64_t p = 0; p < in_.pixels(); ++p) f(in_.at(n, 0, 0, 0) + p);
    }
  }
  template <class F>
  void for_channels(std::int64_t start, F&& f) const {
    for (std::int64_t c = 0; c < in_.c; ++c) f(start + c * in_.pixels());
  }
};

class Add final : public NaiveOp {
 public:
  explicit Add(const OpRequest& request) : NaiveOp(request, request.inputs[0].shape) {
    memory_.forward_in_place = true;
    memory_.backward_in_place = true;
  }
  void forward(const ForwardCall& call) override {
    for (std::int64_t i = 0; i < in_.elements(); ++i) {
      double sum = 0;
      for (const float* input : call.inputs) sum += input[i];
      call.output[i] = static_cast<float>(sum);
    }
  }
  void backward(const BackwardCall& call) override {
    for (float* gradient : call.input_gradients) {
      if (gradient == nullptr || gradient == call.output_gradient) continue;
      std::copy_n(call.output_gradient, in_.elements(), gradient);
    }
  }
};

class Concat final : public NaiveOp {
 public:
  explicit Concat(const OpRequest& request) : NaiveOp(request, joined(request)) {}
  void forward(const ForwardCall& call) override {
    for_each_part([&](std::size_t input, std::int64_t from, std::int64_t to, std::int64_t size) {
      std::copy_n(call.inputs[input] + from, size, call.output + to);
    });
  }
  void backward(const BackwardCall& call) override {
    for_each_part([&](std::size_t input, std::int64_t from, std::int64_t to, std::int64_t size) {
      if (call.input_gradients[input] == nullptr) return;
      std::copy_n(call.output_gradient + to, size, call.input_gradients[input] + from);
    });
  }

 private:
  static Shape joined(const OpRequest& request) {
    Shape shape = request.inputs[0].shape;
    for (std::size_t i = 1; i < request.inputs.size(); ++i) {
      shape[1] += request.inputs[i].shape[1];
    }
    return shape;
  }
  template <class F>
  void for_each_part(F&& f) const {
    for (std::int64_t n = 0; n < out_.n; ++n) {
      std::int64_t to = out_.at(n, 0, 0, 0);
      for (std::size_t i = 0; i < request_.inputs.size(); ++i) {
        const std::int64_t size = request_.inputs[i].shape.elements_from(1);
        f(i, n * size, to, size);
        to += size;
      }
    }
  }
};

class View final : public NaiveOp {
 public:
  View(const OpRequest& request, const Shape& output) : NaiveOp(request, output) {
    memory_.alias = true;
  }
  void forward(const ForwardCall&) override {}
  void backward(const BackwardCall&) override {}
};

}  // namespace

std::unique_ptr<Op> relu(const OpRequest& request) {
  return std::make_unique<Relu>(request);
}
std::unique_ptr<Op> dropout(const OpRequest& request, const DropoutDesc& desc) {
  return std::make_unique<Dropout>(request, desc);
}
std::unique_ptr<Op> softmax(const OpRequest& request) {
  return std::make_unique<Softmax>(request);
}
std::unique_ptr<Op> add(const OpRequest& request) {
  return std::make_unique<Add>(request);
}
std::unique_ptr<Op> concat(const OpRequest& request) {
  return std::make_unique<Concat>(request);
}
std::unique_ptr<Op> view(const OpRequest& request, const Shape& output) {
  return std::make_unique<View>(request, output);
}

}  // namespace annulus::naive
