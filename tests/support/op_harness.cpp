// SPDX-License-Identifier: Apache-2.0
#include "support/op_harness.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include "core/cpu/parallel.h"
#include "core/error.h"
#include "core/placement.h"
#include "support/naive_backend.h"

namespace annulus::testing {
namespace {

constexpr float poison = std::numeric_limits<float>::quiet_NaN();

const cpu::CpuLayout* cpu_layout(const ValueType& type) {
  return dynamic_cast<const cpu::CpuLayout*>(type.layout.get());
}

Values memory_for(const ValueType& type) {
  return Values(type.bytes() / sizeof(float), poison);
}

void check_padding(const ValueType& type, const Values& memory) {
  if (cpu_layout(type) == nullptr) return;
  const cpu::ChannelView view = cpu::channel_view(type);
  const std::int64_t last = view.groups - 1;
  for (std::int64_t image = 0; image < view.images; ++image) {
    for (std::int64_t p = 0; p < view.positions; ++p) {
      for (int lane = view.channel_lanes(last); lane < view.memory_lanes(last); ++lane) {
        const std::int64_t at = view.offset(image, last) + p * view.position_stride + lane;
        require(memory[static_cast<std::size_t>(at)] == 0, ErrorKind::bug, "padding is not zero");
      }
    }
  }
}

std::vector<const float*> pointers(const std::vector<Values>& values) {
  std::vector<const float*> result(values.size());
  std::transform(values.begin(), values.end(), result.begin(),
                 [](const Values& v) { return v.data(); });
  return result;
}

std::vector<float*> writable(std::vector<Values>& values) {
  std::vector<float*> result(values.size());
  std::transform(values.begin(), values.end(), result.begin(), [](Values& v) { return v.data(); });
  return result;
}

OpRequest request_of(Backend& backend, const OpCase& op) {
  OpRequest request;
  request.name = "layer";
  request.mode = op.mode;
  request.seed = 7;
  request.uses = op.uses;
  for (const Shape& shape : op.inputs) {
    ValueType type = backend.plain(shape);
    if (cpu_layout(type) != nullptr && shape.rank() == 4) {
      const bool first = request.inputs.empty();
      type = cpu::make_value(shape, first ? op.format : op.second_format.value_or(op.format));
    }
    request.inputs.push_back(type);
    request.input_gradient.push_back(op.mode == Mode::train);
  }
  for (std::size_t i = 0; i < op.parameters.size(); ++i) {
    request.parameters.push_back(static_cast<int>(i));
  }
  return request;
}

// Adds what is allocated during its life.
class Counting {
 public:
  explicit Counting(Allocations& total) : total_(total) { reset_allocations(); }
  ~Counting() {
    const Allocations more = allocations();
    total_.own += more.own;
    total_.library += more.library;
    total_.library_largest = std::max(total_.library_largest, more.library_largest);
  }
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;

 private:
  Allocations& total_;
};

// The memory and the calls of one run.
class Runner {
 public:
  Runner(Backend& backend, const OpCase& op, bool in_place)
      : op_(op), in_place_(in_place), request_(request_of(backend, op)) {
    operation_ = op.make(backend, request_);
    memory_ = operation_->memory();
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      inputs_.push_back(packed(request_.inputs[i], op.input_values[i]));
    }
    parameters_ = op.parameter_values;
    running_ = op.running;
    samples_ = op.samples;
    if (samples_.empty()) {
      samples_.resize(static_cast<std::size_t>(op.inputs[0][0]));
      std::iota(samples_.begin(), samples_.end(), 0);
    }
    result_.batch_sums.assign(op.statistics > 0 ? 2 : 0,
                              Values(static_cast<std::size_t>(op.statistics), poison));
    saved_.resize(memory_.saved, std::byte{0xFF});
  }

  OpResult run() {
    allocated_ = {};
    result_.input_gradients.clear();
    result_.parameter_gradients.clear();
    forward();
    if (op_.mode == Mode::train) backward();
    result_.shape = operation_->output().shape;
    result_.implementation = operation_->implementation();
    return result_;
  }

  // What the operation's calls of the last run allocated.
  const Allocations& allocated() const { return allocated_; }

  // A forward pass of changed data, by the same operation.
  const Values& forward_of(const OpCase& changed) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      inputs_[i] = packed(request_.inputs[i], changed.input_values[i]);
    }
    parameters_ = changed.parameter_values;
    ++version_;
    forward();
    return result_.output;
  }

 private:
  StepContext step() const { return {op_.iteration, samples_, version_}; }

  void forward() {
    const ValueType& type = operation_->output();
    output_ = memory_for(type);
    std::vector<std::byte, Aligned<std::byte>> workspace(memory_.forward_workspace,
                                                         std::byte{0xFF});
    const bool reuse = memory_.alias || (in_place_ && memory_.forward_in_place);
    if (reuse) std::copy(inputs_[0].begin(), inputs_[0].end(), output_.begin());
    auto inputs = pointers(inputs_);
    if (reuse) inputs[0] = output_.data();
    const auto parameters = pointers(parameters_);
    const auto running = pointers(running_);
    const auto sums = writable(result_.batch_sums);
    if (!memory_.alias) {
      const Counting counting(allocated_);
      operation_->forward({inputs, output_.data(), parameters, running, sums, saved_.data(),
                           workspace.data(), step()});
    }
    check_padding(type, output_);
    result_.output = unpacked(type, output_.data());
  }

  void backward() {
    const ValueType& type = operation_->output();
    const Values gradient = packed(type, op_.output_gradient);
    std::vector<std::byte, Aligned<std::byte>> workspace(memory_.backward_workspace,
                                                         std::byte{0xFF});
    std::vector<Values> input_gradients;
    for (const ValueType& input : request_.inputs) input_gradients.push_back(memory_for(input));
    const bool reuse = memory_.alias || (in_place_ && memory_.backward_in_place);
    if (reuse) std::copy(gradient.begin(), gradient.end(), input_gradients[0].begin());
    auto inputs = pointers(inputs_);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!memory_.backward_reads_input[i]) inputs[i] = nullptr;
    }
    for (const Shape& shape : op_.parameters) {
      result_.parameter_gradients.emplace_back(shape.elements(), poison);
    }
    const auto into = writable(input_gradients);
    const auto parameters = pointers(parameters_);
    const auto parameter_gradients = writable(result_.parameter_gradients);
    if (!memory_.alias) {
      const Counting counting(allocated_);
      operation_->backward({inputs, memory_.backward_reads_output ? output_.data() : nullptr,
                            reuse ? into[0] : gradient.data(), into, parameters,
                            parameter_gradients, saved_.data(), workspace.data(), step()});
    }
    for (std::size_t i = 0; i < into.size(); ++i) {
      check_padding(request_.inputs[i], input_gradients[i]);
      result_.input_gradients.push_back(unpacked(request_.inputs[i], into[i]));
    }
  }

  const OpCase& op_;
  bool in_place_;
  OpRequest request_;
  std::unique_ptr<Op> operation_;
  OpMemory memory_;
  std::int64_t version_ = 1;
  std::vector<Values> inputs_;
  std::vector<Values> parameters_;
  std::vector<Values> running_;
  std::vector<std::int64_t> samples_;
  std::vector<std::byte, Aligned<std::byte>> saved_;
  Values output_;
  OpResult result_;
  Allocations allocated_;
};

double weighted_sum(const Values& values, const Values& weights) {
  return std::inner_product(values.begin(), values.end(), weights.begin(), 0.0, std::plus<double>(),
                            [](double a, double b) { return a * b; });
}

// `values` is a part of `op`.
double compare_differences(Runner& runner, OpCase& op, Values& values, const Values& gradient,
                           double step) {
  double worst = 0;
  double scale = 1;
  for (float g : gradient) scale = std::max(scale, static_cast<double>(std::abs(g)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float before = values[i];
    values[i] = static_cast<float>(before + step);
    const double up = weighted_sum(runner.forward_of(op), op.output_gradient);
    values[i] = static_cast<float>(before - step);
    const double down = weighted_sum(runner.forward_of(op), op.output_gradient);
    values[i] = before;
    worst = std::max(worst, std::abs((up - down) / (2 * step) - gradient[i]) / scale);
  }
  return worst;
}

}  // namespace

Values random_values(std::int64_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  Values values(static_cast<std::size_t>(count));
  for (float& v : values) v = static_cast<float>(random() >> 8) * 0x1p-23F - 1;
  return values;
}

Values distinct_values(std::int64_t count, std::uint32_t seed) {
  Values values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = 0.1F * (static_cast<float>(i) - static_cast<float>(count) / 2) + 0.05F;
  }
  std::mt19937 random(seed);
  for (std::size_t i = values.size(); i-- > 1;) std::swap(values[i], values[random() % (i + 1)]);
  return values;
}

void randomize(OpCase& op, std::uint32_t seed) {
  for (std::size_t i = op.input_values.size(); i < op.inputs.size(); ++i) {
    op.input_values.push_back(
        random_values(op.inputs[i].elements(), seed * 100 + 1 + static_cast<unsigned>(i)));
  }
  for (std::size_t i = op.parameter_values.size(); i < op.parameters.size(); ++i) {
    op.parameter_values.push_back(
        random_values(op.parameters[i].elements(), seed * 100 + 51 + static_cast<unsigned>(i)));
  }
  if (op.output_gradient.empty()) {
    const auto naive = make_naive_backend();
    const Shape shape = op.make(*naive, request_of(*naive, op))->output().shape;
    op.output_gradient = random_values(shape.elements(), seed * 100 + 99);
  }
}

Values packed(const ValueType& type, const Values& logical) {
  if (cpu_layout(type) == nullptr) return logical;
  Values memory(type.bytes() / sizeof(float), 0);
  const cpu::ChannelView view = cpu::channel_view(type);
  std::size_t next = 0;
  for (std::int64_t image = 0; image < view.images; ++image) {
    for (std::int64_t channel = 0; channel < view.channels; ++channel) {
      for (std::int64_t p = 0; p < view.positions; ++p) {
        memory[static_cast<std::size_t>(view.channel_offset(image, channel) +
                                        p * view.position_stride)] = logical[next++];
      }
    }
  }
  return memory;
}

Values unpacked(const ValueType& type, const float* memory) {
  Values logical(static_cast<std::size_t>(type.shape.elements()));
  if (cpu_layout(type) == nullptr) {
    std::copy_n(memory, logical.size(), logical.begin());
    return logical;
  }
  const cpu::ChannelView view = cpu::channel_view(type);
  std::size_t next = 0;
  for (std::int64_t image = 0; image < view.images; ++image) {
    for (std::int64_t channel = 0; channel < view.channels; ++channel) {
      for (std::int64_t p = 0; p < view.positions; ++p) {
        logical[next++] = memory[view.channel_offset(image, channel) + p * view.position_stride];
      }
    }
  }
  return logical;
}

OpResult run(Backend& backend, const OpCase& op, bool in_place) {
  return Runner(backend, op, in_place).run();
}

Allocations allocations_of_second_run(Backend& backend, const OpCase& op) {
  Runner runner(backend, op, false);
  runner.run();
  runner.run();
  return runner.allocated();
}

double difference(const Values& a, const Values& b) {
  require_equal(b.size(), a.size(), "values");
  double worst = 0;
  double scale = 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(static_cast<double>(a[i]) - b[i]);
    if (!(d <= worst)) worst = d;  // a NaN stays
    scale = std::max(scale, static_cast<double>(std::abs(b[i])));
  }
  return worst / scale;
}

double difference(const OpResult& a, const OpResult& b) {
  require(a.shape == b.shape, ErrorKind::bug, "shapes {} and {}", to_string(a.shape),
          to_string(b.shape));
  std::vector<double> parts = {difference(a.output, b.output)};
  const auto add = [&](const std::vector<Values>& x, const std::vector<Values>& y) {
    require_equal(y.size(), x.size(), "tensors");
    for (std::size_t i = 0; i < x.size(); ++i) parts.push_back(difference(x[i], y[i]));
  };
  add(a.input_gradients, b.input_gradients);
  add(a.parameter_gradients, b.parameter_gradients);
  add(a.batch_sums, b.batch_sums);
  double worst = 0;
  for (double part : parts) {
    if (!(part <= worst)) worst = part;
  }
  return worst;
}

bool same_bits(const OpResult& a, const OpResult& b) {
  const auto same = [](const Values& x, const Values& y) {
    return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
  };
  const auto all = [&](const std::vector<Values>& x, const std::vector<Values>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), same);
  };
  return same(a.output, b.output) && all(a.input_gradients, b.input_gradients) &&
         all(a.parameter_gradients, b.parameter_gradients) && all(a.batch_sums, b.batch_sums);
}

double against_reference(OpCase op) {
  randomize(op);
  const auto naive = make_naive_backend();
  const OpResult expected = run(*naive, op);
  const auto backend = cpu_backend();
  const OpResult found = run(*backend, op);
  require(same_bits(found, run(*backend, op, true)), ErrorKind::bug, "in place is not the same");
  return difference(found, expected);
}

double gradient_error(OpCase op, double step) {
  randomize(op);
  const auto backend = cpu_backend();
  Runner runner(*backend, op, false);
  const OpResult result = runner.run();
  double worst = 0;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    worst = std::max(worst, compare_differences(runner, op, op.input_values[i],
                                                result.input_gradients[i], step));
  }
  for (std::size_t i = 0; i < op.parameters.size(); ++i) {
    worst = std::max(worst, compare_differences(runner, op, op.parameter_values[i],
                                                result.parameter_gradients[i], step));
  }
  return worst;
}

std::unique_ptr<Backend> cpu_backend(int threads) {
  set_parallel_threads(threads);
  const auto device = make_cpu_device(Placement{});
  return make_cpu_backend(*device);
}

}  // namespace annulus::testing
