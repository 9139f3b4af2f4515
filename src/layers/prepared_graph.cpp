// SPDX-License-Identifier: Apache-2.0
#include "layers/prepared_graph.h"

#include <utility>

#include "layers/loss.h"
#include "layers/tails.h"

namespace annulus {
namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

class Preparer {
 public:
  Preparer(const Graph& graph, Backend& backend, std::int64_t batch, Mode mode, std::uint64_t seed)
      : graph_(graph), backend_(backend), batch_(batch), mode_(mode), seed_(seed) {}

  PreparedGraph prepare(MemoryMode memory) {
    find_gradients();
    make_steps();
    make_prediction();
    result_.loss =
        make_loss(backend_, graph_.loss(), graph_.classes(), result_.values[at(graph_.output())]);
    result_.plan = plan_memory(plan_request(memory));
    return std::move(result_);
  }

 private:
  // A value has a gradient where a parameter lies before it.
  void find_gradients() {
    wants_gradient_.assign(graph_.values().size(), false);
    if (mode_ == Mode::evaluate) return;
    for (const Graph::Node& node : graph_.nodes()) {
      bool wanted = !node.parameters.empty();
      for (int value : node.inputs) wanted = wanted || wants_gradient_[at(value)];
      wants_gradient_[at(node.output)] = wanted;
    }
  }

  void make_steps() {
    result_.values.resize(graph_.values().size());
    for (std::size_t i = 0; i < graph_.inputs().size(); ++i) {
      result_.values[i] = backend_.plain(graph_.inputs()[i].shape.with_batch(batch_));
    }
    std::vector<int> tails(graph_.nodes().size(), -1);
    if (mode_ == Mode::evaluate && backend_.fuses_tails()) tails = find_tails(graph_);
    std::vector<bool> done_later(graph_.nodes().size(), false);
    for (int conv : tails) {
      if (conv >= 0) done_later[at(conv)] = true;
    }
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
      if (done_later[n]) continue;
      Step step =
          step_of(graph_.nodes()[n], tails[n] < 0 ? nullptr : &graph_.nodes()[at(tails[n])]);
      make_operation(step);
      size_arguments(step);
      result_.steps.push_back(std::move(step));
    }
    mark_uses();
  }

  Step step_of(const Graph::Node& node, const Graph::Node* conv) const {
    Step step;
    step.node = &node;
    step.conv = conv;
    step.inputs = node.inputs;
    step.output = node.output;
    step.parameter_ids = node.parameters;
    step.backward = wants_gradient_[at(node.output)];
    if (conv != nullptr) {
      step.inputs[0] = conv->inputs[0];
      step.parameter_ids.insert(step.parameter_ids.begin(), conv->parameters.begin(),
                                conv->parameters.end());
    }
    return step;
  }

  void make_operation(Step& step) {
    OpRequest request;
    request.name = step.node->name;
    request.mode = mode_;
    request.seed = seed_;
    for (int value : step.inputs) {
      request.inputs.push_back(result_.values[at(value)]);
      request.input_gradient.push_back(wants_gradient_[at(value)]);
    }
    request.parameters = step.parameter_ids;
    request.uses = step.node->uses;
    try {
      step.op = step.conv == nullptr ? step.node->layer->make_op(backend_, request)
                                     : make_with_tail(*step.conv, *step.node, backend_, request);
    } catch (const Error& error) {
      Error named(error.kind(), fmt::format("layer {}: {}", step.node->name, error.message()));
      if (!error.expected().empty()) named.values(error.expected(), error.found());
      throw named;
    }
    step.memory = step.op->memory();
    result_.values[at(step.output)] = step.op->output();
  }

  void size_arguments(Step& step) {
    step.input_pointers.resize(step.inputs.size());
    step.backward_inputs.resize(step.inputs.size());
    step.input_gradients.resize(step.inputs.size());
    step.memory.backward_reads_input.resize(step.inputs.size());
    if (step.node == nullptr) return;
    step.parameters.resize(step.parameter_ids.size());
    step.parameter_gradients.resize(step.parameter_ids.size());
    step.running.resize(step.node->statistics.size());
    step.batch_sums.resize(step.node->statistics.size());
    if (step.node->uses == 1) return;
    for (int p : step.parameter_ids) {
      step.parameter_types.push_back(backend_.plain({1, graph_.parameters()[at(p)].elements}));
    }
    for (int s : step.node->statistics) {
      step.statistic_types.push_back(backend_.plain({1, graph_.statistics()[at(s)].elements}));
    }
  }

  void mark_uses() {
    std::vector<Step*> last(graph_.parameters().size(), nullptr);
    for (Step& step : result_.steps) {
      for (int parameter : step.parameter_ids) {
        Step*& before = last[at(parameter)];
        step.first_use = before == nullptr;
        if (before != nullptr) before->last_use = false;
        before = &step;
      }
    }
  }

  void make_prediction() {
    OpRequest request;
    request.name = "prediction";
    request.mode = mode_;
    request.inputs = {result_.values[at(graph_.output())]};
    request.input_gradient = {false};
    Step step;
    step.op = backend_.to_plain(request);
    step.memory = step.op->memory();
    step.inputs = {graph_.output()};
    step.output = static_cast<int>(result_.values.size());
    result_.values.push_back(step.op->output());
    wants_gradient_.push_back(false);
    size_arguments(step);
    result_.steps.push_back(std::move(step));
  }

  PlanRequest plan_request(MemoryMode memory) const {
    PlanRequest request;
    for (const ValueType& type : result_.values) {
      request.value_bytes.push_back(type.layout ? type.bytes() : 0);
    }
    request.inputs = static_cast<int>(graph_.inputs().size());
    for (const Step& step : result_.steps) request.nodes.push_back(plan_node(step));
    request.loss_input = graph_.output();
    request.kept = result_.steps.back().output;
    request.loss_workspace = result_.loss->workspace();
    request.train = mode_ == Mode::train;
    request.separate = memory == MemoryMode::separate;
    return request;
  }

  PlanNode plan_node(const Step& step) const {
    PlanNode node;
    node.inputs = step.inputs;
    node.output = step.output;
    node.memory = step.memory;
    node.backward = step.backward;
    for (int value : step.inputs) node.input_gradient.push_back(wants_gradient_[at(value)]);
    if (mode_ == Mode::evaluate) return node;
    if (!step.first_use) {
      for (const ValueType& type : step.statistic_types) node.forward_scratch += type.bytes();
    }
    if (!step.last_use) {
      for (const ValueType& type : step.parameter_types) node.backward_scratch += type.bytes();
    }
    return node;
  }

  const Graph& graph_;
  Backend& backend_;
  std::int64_t batch_;
  Mode mode_;
  std::uint64_t seed_;
  std::vector<bool> wants_gradient_;
  PreparedGraph result_;
};

}  // namespace

PreparedGraph prepare(const Graph& graph, Backend& backend, std::int64_t batch, Mode mode,
                      std::uint64_t seed, MemoryMode memory) {
  require(batch >= 1, ErrorKind::bug, "an executor for a batch of {}", batch);
  return Preparer(graph, backend, batch, mode, seed).prepare(memory);
}

}  // namespace annulus
