// SPDX-License-Identifier: Apache-2.0
#include "layers/executor.h"

#include <utility>

#include "layers/prepared_graph.h"

namespace annulus {
namespace {

// A signalling NaN: any arithmetic on a dead value shows in the result.
constexpr std::uint32_t poison = 0x7FA0DEAD;

using Inputs = std::span<const float* const>;

std::string_view name_of(const Step& step) {
  return step.node == nullptr ? std::string_view("prediction") : std::string_view(step.node->name);
}

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

}  // namespace

struct Executor::Impl {
  Impl(const Graph& model, Backend& device, std::int64_t samples, Mode pass_mode,
       std::uint64_t seed, MemoryMode memory)
      : graph(model),
        backend(device),
        batch(samples),
        mode(pass_mode),
        poisons(memory == MemoryMode::separate),
        ready_graph(prepare(model, device, samples, pass_mode, seed, memory)),
        steps(ready_graph.steps),
        plan(ready_graph.plan) {}

  std::byte* bytes_at(const Place& place) const {
    return place.offset == Place::nowhere ? nullptr : arena + place.offset;
  }
  float* floats_at(const Place& place) const { return reinterpret_cast<float*>(bytes_at(place)); }
  const float* value_at(int value, Inputs inputs) const {
    const Place& place = plan.values[at(value)];
    return place.input >= 0 ? inputs[at(place.input)] : floats_at(place);
  }

  void check_call(Inputs inputs) const {
    require(arena != nullptr || plan.bytes == 0, ErrorKind::bug, "an executor without its arena");
    require_equal(graph.inputs().size(), inputs.size(), "inputs of a pass");
  }

  // Poisons what dies up to a time of the step.
  void bury(int time) {
    if (!poisons) return;
    for (; next_death < plan.deaths.size() && plan.deaths[next_death].time <= time; ++next_death) {
      const Death& death = plan.deaths[next_death];
      backend.fill(arena + death.offset, death.bytes, poison);
    }
  }

  void forward(Inputs inputs, const FlatBuffers& buffers, const StepContext& context) {
    check_call(inputs);
    next_death = 0;
    for (std::size_t n = 0; n < steps.size(); ++n) {
      if (!steps[n].memory.alias) {
        const TraceRange range(context.trace, Trace::trainer, name_of(steps[n]), "forward");
        forward_step(n, inputs, buffers, context);
      }
      bury(forward_time(static_cast<int>(n)));
    }
    output = value_at(graph.output(), inputs);
    prediction = value_at(steps.back().output, inputs);
  }

  void forward_step(std::size_t n, Inputs inputs, const FlatBuffers& buffers,
                    const StepContext& context) {
    Step& step = steps[n];
    const NodePlaces& places = plan.nodes[n];
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      step.input_pointers[i] = value_at(step.inputs[i], inputs);
    }
    set_parameters(step, buffers);
    float* scratch = floats_at(places.forward_scratch);
    set_statistics(step, buffers, scratch);
    ForwardCall call;
    call.inputs = step.input_pointers;
    call.output = floats_at(plan.values[at(step.output)]);
    call.parameters = step.parameters;
    if (mode == Mode::evaluate) {
      call.running = step.running;
    } else {
      call.batch_sums = step.batch_sums;
    }
    call.saved = bytes_at(places.saved);
    call.workspace = bytes_at(places.forward_workspace);
    call.step = context;
    step.op->forward(call);
    if (scratch != nullptr) add_batch_sums(step, buffers);
  }

  const Graph::Parameter& parameter(const Step& step, std::size_t i) const {
    return graph.parameters()[at(step.parameter_ids[i])];
  }
  const Graph::Statistic& statistic(const Step& step, std::size_t i) const {
    return graph.statistics()[at(step.node->statistics[i])];
  }

  void set_parameters(Step& step, const FlatBuffers& buffers) const {
    for (std::size_t i = 0; i < step.parameters.size(); ++i) {
      step.parameters[i] = buffers.weights + parameter(step, i).offset;
    }
  }

  // The first use of shared statistics writes the flat buffer, later ones write scratch.
  void set_statistics(Step& step, const FlatBuffers& buffers, float* scratch) const {
    for (std::size_t i = 0; i < step.running.size(); ++i) {
      const Graph::Statistic& s = statistic(step, i);
      if (mode == Mode::evaluate) {
        step.running[i] = buffers.statistics + s.offset;
      } else {
        step.batch_sums[i] = scratch != nullptr ? scratch : buffers.batch_sums + s.offset;
      }
      if (scratch != nullptr) scratch += s.elements;
    }
  }

  void add_batch_sums(const Step& step, const FlatBuffers& buffers) {
    for (std::size_t i = 0; i < step.batch_sums.size(); ++i) {
      backend.accumulate(step.statistic_types[i], buffers.batch_sums + statistic(step, i).offset,
                         step.batch_sums[i]);
    }
  }

  LossSums loss(const void* targets, double scale) {
    require(output != nullptr, ErrorKind::bug, "a loss before the first forward pass");
    float* gradient = floats_at(plan.gradients[at(graph.output())]);
    const LossSums sums =
        ready_graph.loss->run(output, targets, scale, gradient, bytes_at(plan.loss_workspace));
    bury(loss_time(static_cast<int>(steps.size())));
    return sums;
  }

  void backward(Inputs inputs, const FlatBuffers& buffers, const StepContext& context,
                const GradientReady& ready) {
    check_call(inputs);
    require(mode == Mode::train, ErrorKind::bug, "backward of an executor for evaluation");
    for (std::size_t n = steps.size(); n-- > 0;) {
      const Step& step = steps[n];
      if (step.backward) {
        const TraceRange range(context.trace, Trace::trainer, name_of(step), "backward");
        backward_step(n, inputs, buffers, context);
      }
      bury(backward_time(static_cast<int>(n), static_cast<int>(steps.size())));
      // Backward comes to the first use last.
      if (step.backward && step.first_use && !step.parameters.empty()) {
        ready(step.node->parameters.back());
      }
    }
  }

  void backward_step(std::size_t n, Inputs inputs, const FlatBuffers& buffers,
                     const StepContext& context) {
    Step& step = steps[n];
    const NodePlaces& places = plan.nodes[n];
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      step.input_gradients[i] = floats_at(places.input_gradients[i].written);
    }
    if (!step.memory.alias) run_backward(step, places, inputs, buffers, context);
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      if (!places.input_gradients[i].accumulate) continue;
      const int value = step.inputs[i];
      backend.accumulate(ready_graph.values[at(value)], floats_at(plan.gradients[at(value)]),
                         step.input_gradients[i]);
    }
  }

  void run_backward(Step& step, const NodePlaces& places, Inputs inputs, const FlatBuffers& buffers,
                    const StepContext& context) {
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      const bool reads = step.memory.backward_reads_input[i];
      step.backward_inputs[i] = reads ? value_at(step.inputs[i], inputs) : nullptr;
    }
    set_parameters(step, buffers);
    float* scratch = floats_at(places.backward_scratch);
    set_parameter_gradients(step, buffers, scratch);
    BackwardCall call;
    call.inputs = step.backward_inputs;
    if (step.memory.backward_reads_output) call.output = value_at(step.output, inputs);
    call.output_gradient = floats_at(plan.gradients[at(step.output)]);
    call.input_gradients = step.input_gradients;
    call.parameters = step.parameters;
    call.parameter_gradients = step.parameter_gradients;
    call.saved = bytes_at(places.saved);
    call.workspace = bytes_at(places.backward_workspace);
    call.step = context;
    step.op->backward(call);
    if (scratch != nullptr) add_parameter_gradients(step, buffers);
  }

  // The last use of shared parameters, where backward starts, writes the flat buffer; the others
  // write scratch, which is then added.
  void set_parameter_gradients(Step& step, const FlatBuffers& buffers, float* scratch) const {
    for (std::size_t i = 0; i < step.parameter_gradients.size(); ++i) {
      const Graph::Parameter& p = parameter(step, i);
      step.parameter_gradients[i] = scratch != nullptr ? scratch : buffers.gradients + p.offset;
      if (scratch != nullptr) scratch += p.elements;
    }
  }

  void add_parameter_gradients(const Step& step, const FlatBuffers& buffers) {
    for (std::size_t i = 0; i < step.parameter_gradients.size(); ++i) {
      backend.accumulate(step.parameter_types[i], buffers.gradients + parameter(step, i).offset,
                         step.parameter_gradients[i]);
    }
  }

  const Graph& graph;
  Backend& backend;
  std::int64_t batch;
  Mode mode;
  bool poisons;
  PreparedGraph ready_graph;
  std::vector<Step>& steps;
  const MemoryPlan& plan;
  std::byte* arena = nullptr;
  const float* output = nullptr;      // of the last forward pass
  const float* prediction = nullptr;  // the same, plain
  std::size_t next_death = 0;
};

Executor::Executor(const Graph& graph, Backend& backend, std::int64_t batch, Mode mode,
                   std::uint64_t seed, MemoryMode memory)
    : impl_(std::make_unique<Impl>(graph, backend, batch, mode, seed, memory)) {}

Executor::~Executor() = default;

std::int64_t Executor::batch() const {
  return impl_->batch;
}

std::size_t Executor::arena_bytes() const {
  return impl_->plan.bytes;
}

void Executor::bind(std::byte* arena) {
  impl_->arena = arena;
  if (impl_->poisons) impl_->backend.fill(arena, impl_->plan.bytes, poison);
}

void Executor::forward(Inputs inputs, const FlatBuffers& buffers, const StepContext& step) {
  impl_->forward(inputs, buffers, step);
}

LossSums Executor::loss(const void* targets, double scale) {
  return impl_->loss(targets, scale);
}

void Executor::backward(Inputs inputs, const FlatBuffers& buffers, const StepContext& step,
                        const GradientReady& ready) {
  impl_->backward(inputs, buffers, step, ready);
}

const float* Executor::prediction() const {
  return impl_->prediction;
}

std::vector<Executor::NodeReport> Executor::report() const {
  const auto& all = impl_->graph.nodes();
  std::vector<NodeReport> nodes(all.size());
  for (const Step& step : impl_->steps) {
    if (step.node == nullptr) continue;
    nodes[at(static_cast<int>(step.node - all.data()))] = {
        step.op->implementation(), impl_->ready_graph.values[at(step.output)].bytes()};
  }
  return nodes;
}

}  // namespace annulus
