// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <doctest/doctest.h>

#include "layers/memory_plan.h"

namespace annulus {
namespace {

PlanNode node(std::vector<int> inputs, int output, bool backward = true) {
  PlanNode result;
  result.inputs = std::move(inputs);
  result.output = output;
  result.backward = backward;
  result.input_gradient.assign(result.inputs.size(), backward);
  result.memory.backward_reads_input.assign(result.inputs.size(), false);
  return result;
}

// A chain over values 0 (the input) to `nodes`; all of 1024 bytes; the loss reads the last one,
// which is kept.
PlanRequest chain(int nodes, bool train) {
  PlanRequest request;
  request.value_bytes.assign(static_cast<std::size_t>(nodes) + 1, 1024);
  request.inputs = 1;
  for (int n = 0; n < nodes; ++n) request.nodes.push_back(node({n}, n + 1, n > 0));
  if (nodes > 0) request.nodes[0].backward = true;
  request.nodes[0].input_gradient = {false};
  request.loss_input = nodes;
  request.kept = nodes;
  request.train = train;
  return request;
}

}  // namespace

TEST_CASE("evaluation keeps a value until its last reader") {
  const MemoryPlan plan = plan_memory(chain(6, false));
  CHECK(plan.bytes == 2 * 1024);
  CHECK(plan.values[0].input == 0);
  CHECK(plan.values[1].offset != plan.values[2].offset);
  CHECK(plan.values[1].offset == plan.values[3].offset);
}

TEST_CASE("what backward reads is kept, what it does not read is not") {
  PlanRequest request = chain(4, true);
  // Two values and, in backward, two gradients at a time.
  CHECK(plan_memory(request).bytes == 3 * 1024);
  for (PlanNode& n : request.nodes) n.memory.backward_reads_input[0] = true;
  // Values 1 to 4 live when the last node turns the gradient of its output into another.
  const MemoryPlan plan = plan_memory(request);
  CHECK(plan.bytes == 6 * 1024);
  CHECK(plan.gradients[0].offset == Place::nowhere);
  CHECK(plan.gradients[1].offset != Place::nowhere);
}

TEST_CASE("in place: the output takes the memory of an input that nobody needs any more") {
  PlanRequest request = chain(3, false);
  for (PlanNode& n : request.nodes) n.memory.forward_in_place = true;
  const MemoryPlan plan = plan_memory(request);
  CHECK(plan.bytes == 1024);  // not the caller's memory: value 1 has its own
  CHECK(plan.values[3].offset == plan.values[1].offset);

  request.train = true;
  request.nodes[1].memory.backward_reads_input[0] = true;
  const MemoryPlan trained = plan_memory(request);
  CHECK(trained.values[2].offset != trained.values[1].offset);
  CHECK(trained.values[3].offset == trained.values[2].offset);

  request.separate = true;
  const MemoryPlan apart = plan_memory(request);
  CHECK(apart.values[3].offset != apart.values[2].offset);
}

TEST_CASE("in place is left where another layer reads the input later") {
  PlanRequest request = chain(3, false);
  request.nodes[1].memory.forward_in_place = true;
  request.nodes[2] = node({2, 1}, 3);
  const MemoryPlan plan = plan_memory(request);
  CHECK(plan.values[1].offset != plan.values[2].offset);
  PlanRequest twice = chain(2, false);
  twice.nodes[1] = node({1, 1}, 2);
  twice.nodes[1].memory.forward_in_place = true;
  CHECK(plan_memory(twice).values[1].offset != plan_memory(twice).values[2].offset);
}

TEST_CASE("a view has the place of what it sees, which lives as long as the view") {
  PlanRequest request = chain(4, false);
  request.nodes[1].memory.alias = true;
  request.nodes[3] = node({3, 2}, 4);
  const MemoryPlan plan = plan_memory(request);
  CHECK(plan.values[2].offset == plan.values[1].offset);
  CHECK(plan.values[3].offset != plan.values[1].offset);
  PlanRequest first = chain(2, false);
  first.nodes[0].memory.alias = true;
  CHECK(plan_memory(first).values[1].input == 0);
}

TEST_CASE("a view keeps a later layer from writing over it") {
  // Value 2 is a view of 1; node 2 could overwrite 1, but node 3 reads the view.
  PlanRequest request = chain(4, false);
  request.nodes[1].memory.alias = true;
  request.nodes[2] = node({1}, 3);
  request.nodes[2].memory.forward_in_place = true;
  request.nodes[3] = node({3, 2}, 4);
  const MemoryPlan plan = plan_memory(request);
  CHECK(plan.values[3].offset != plan.values[1].offset);
}

TEST_CASE("gradients of a value with several readers are written once and added to after") {
  PlanRequest request = chain(3, true);
  request.nodes[2] = node({2, 1}, 3);
  const MemoryPlan plan = plan_memory(request);
  const GradientPlace& direct = plan.nodes[2].input_gradients[1];
  const GradientPlace& added = plan.nodes[1].input_gradients[0];
  CHECK_FALSE(direct.accumulate);
  CHECK(direct.written.offset == plan.gradients[1].offset);
  CHECK(added.accumulate);
  CHECK(added.written.offset != plan.gradients[1].offset);
}

TEST_CASE("a gradient in place and that of a view lie over the output's gradient") {
  for (const bool alias : {true, false}) {
    PlanRequest request = chain(2, true);
    request.nodes[1].memory.alias = alias;
    request.nodes[1].memory.backward_in_place = !alias;
    const MemoryPlan plan = plan_memory(request);
    CHECK(plan.gradients[1].offset == plan.gradients[2].offset);
    request.separate = true;
    const MemoryPlan apart = plan_memory(request);
    CHECK((apart.gradients[1].offset == apart.gradients[2].offset) == alias);
  }
}

TEST_CASE("saved bytes live from forward to backward, work space only in its call") {
  PlanRequest request = chain(3, true);
  request.nodes[0].memory.saved = 4096;
  request.nodes[1].memory.forward_workspace = 8192;
  request.nodes[2].memory.backward_workspace = 8192;
  const MemoryPlan plan = plan_memory(request);
  const std::size_t saved = plan.nodes[0].saved.offset;
  const auto apart_from_saved = [&](const Place& place, std::size_t bytes) {
    return place.offset + bytes <= saved || saved + 4096 <= place.offset;
  };
  CHECK(apart_from_saved(plan.nodes[1].forward_workspace, 8192));
  CHECK(apart_from_saved(plan.nodes[2].backward_workspace, 8192));
  CHECK(plan.bytes <= 4096 + 8192 + 3 * 1024);
  request.train = false;
  CHECK(plan_memory(request).bytes <= 8192 + 2 * 1024);
}

TEST_CASE("separate memory: nothing overlaps and everything but the prediction dies") {
  PlanRequest request = chain(3, true);
  for (PlanNode& n : request.nodes) n.memory.backward_reads_input[0] = true;
  request.separate = true;
  const MemoryPlan plan = plan_memory(request);
  CHECK(plan.bytes == 6 * 1024);  // values 1 to 3 and their gradients
  CHECK(plan.deaths.size() == 5);
  for (std::size_t i = 1; i < plan.deaths.size(); ++i) {
    CHECK(plan.deaths[i - 1].time <= plan.deaths[i].time);
  }
  for (const Death& death : plan.deaths) CHECK(death.offset != plan.values[3].offset);
}

}  // namespace annulus
