// SPDX-License-Identifier: Apache-2.0
#include "layers/memory_plan.h"

#include <algorithm>
#include <limits>

#include "core/arena.h"

namespace annulus {
namespace {

constexpr int never = std::numeric_limits<int>::max();
constexpr int no_block = -1;

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

// Builds blocks of memory with their lifetimes, then lets plan_arena place them.
class Planner {
 public:
  explicit Planner(const PlanRequest& request)
      : request_(request),
        nodes_(static_cast<int>(request.nodes.size())),
        value_block_(request.value_bytes.size(), no_block),
        value_input_(request.value_bytes.size(), -1),
        last_read_(request.value_bytes.size(), -1),
        gradient_block_(request.value_bytes.size(), no_block) {}

  MemoryPlan plan() {
    find_last_reads();
    plan_.nodes.resize(request_.nodes.size());
    places_.resize(request_.nodes.size());
    for (int v = 0; v < request_.inputs; ++v) value_input_[at(v)] = v;
    for (int n = 0; n < nodes_; ++n) forward(n);
    loss_block_ = transient(request_.loss_workspace, loss_time(nodes_));
    if (request_.train) {
      for (int n = nodes_; n-- > 0;) backward(n);
    }
    return place();
  }

 private:
  struct NodeBlocks {
    int saved = no_block;
    int forward_workspace = no_block;
    int forward_scratch = no_block;
    int backward_workspace = no_block;
    int backward_scratch = no_block;
    std::vector<int> written;
  };

  int block(std::size_t bytes, int first, int last) {
    if (bytes == 0) return no_block;
    blocks_.push_back({bytes, first, last});
    return static_cast<int>(blocks_.size()) - 1;
  }
  int transient(std::size_t bytes, int time) { return block(bytes, time, time); }
  void extend(int block, int time) {
    if (block != no_block) blocks_[at(block)].last = std::max(blocks_[at(block)].last, time);
  }

  // The last time at which each value is read.
  void find_last_reads() {
    const auto read = [&](int value, int time) {
      last_read_[at(value)] = std::max(last_read_[at(value)], time);
    };
    for (int n = 0; n < nodes_; ++n) {
      const PlanNode& node = request_.nodes[at(n)];
      const bool back = request_.train && node.backward;
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        read(node.inputs[i], forward_time(n));
        if (back && node.memory.backward_reads_input[i]) {
          read(node.inputs[i], backward_time(n, nodes_));
        }
      }
      read(node.output, forward_time(n));
      if (back && node.memory.backward_reads_output) read(node.output, backward_time(n, nodes_));
    }
    read(request_.loss_input, loss_time(nodes_));
    if (request_.kept >= 0) read(request_.kept, never);
  }

  // Whether the output of node `n` may take the memory of the input that its operation names.
  bool in_place(int n) const {
    const PlanNode& node = request_.nodes[at(n)];
    if (request_.separate || !node.memory.forward_in_place) return false;
    const int input = node.inputs[node.memory.in_place_input];
    if (value_block_[at(input)] == no_block) return false;  // the caller's memory
    if (request_.value_bytes[at(input)] != request_.value_bytes[at(node.output)]) return false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (i == node.memory.in_place_input) continue;
      if (value_block_[at(node.inputs[i])] == value_block_[at(input)]) return false;
    }
    // Every value in that memory must be dead, views of it too: those to come count as its readers.
    for (std::size_t v = 0; v < value_block_.size(); ++v) {
      if (value_block_[v] == value_block_[at(input)] && last_read_[v] > forward_time(n)) {
        return false;
      }
    }
    return true;
  }

  void forward(int n) {
    const PlanNode& node = request_.nodes[at(n)];
    const int time = forward_time(n);
    const int last = std::max(last_read_[at(node.output)], time);
    int& output = value_block_[at(node.output)];
    if (node.memory.alias) {
      output = value_block_[at(node.inputs[0])];
      value_input_[at(node.output)] = value_input_[at(node.inputs[0])];
      extend(output, last);
    } else if (in_place(n)) {
      output = value_block_[at(node.inputs[node.memory.in_place_input])];
      extend(output, last);
    } else {
      output = block(request_.value_bytes[at(node.output)], time, last);
    }
    NodeBlocks& blocks = places_[at(n)];
    const bool back = request_.train && node.backward;
    blocks.saved = block(node.memory.saved, time, back ? backward_time(n, nodes_) : time);
    blocks.forward_workspace = transient(node.memory.forward_workspace, time);
    blocks.forward_scratch = transient(node.forward_scratch, time);
  }

  void backward(int n) {
    const PlanNode& node = request_.nodes[at(n)];
    NodeBlocks& blocks = places_[at(n)];
    NodePlaces& places = plan_.nodes[at(n)];
    places.input_gradients.resize(node.inputs.size());
    blocks.written.assign(node.inputs.size(), no_block);
    if (!node.backward) return;
    const int time = backward_time(n, nodes_);
    blocks.backward_workspace = transient(node.memory.backward_workspace, time);
    blocks.backward_scratch = transient(node.backward_scratch, time);
    const int output_gradient = gradient_of_output(node, time);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.input_gradient[i]) continue;
      const int reused = i == 0 && reuses_gradient(node) ? output_gradient : no_block;
      input_gradient(n, i, reused);
    }
  }

  // The last node's output has its gradient from the loss.
  int gradient_of_output(const PlanNode& node, int time) {
    int& gradient = gradient_block_[at(node.output)];
    if (gradient == no_block) {
      gradient = block(request_.value_bytes[at(node.output)], loss_time(nodes_), time);
    }
    extend(gradient, time);
    return gradient;
  }

  // Whether the gradient of the first input takes the memory of the output's.
  bool reuses_gradient(const PlanNode& node) const {
    if (node.memory.alias) return true;
    return !request_.separate && node.memory.backward_in_place &&
           request_.value_bytes[at(node.inputs[0])] == request_.value_bytes[at(node.output)];
  }

  void input_gradient(int n, std::size_t i, int reused) {
    const int value = request_.nodes[at(n)].inputs[i];
    const int time = backward_time(n, nodes_);
    int& gradient = gradient_block_[at(value)];
    GradientPlace& place = plan_.nodes[at(n)].input_gradients[i];
    place.accumulate = gradient != no_block;
    int written = reused;
    if (written == no_block) written = transient(request_.value_bytes[at(value)], time);
    if (!place.accumulate) gradient = written;
    extend(gradient, time);
    places_[at(n)].written[i] = written;
  }

  Place place_of(int block) const {
    return block == no_block ? Place{} : Place{offsets_[at(block)], -1};
  }

  MemoryPlan place() {
    if (request_.separate) {
      place_apart();
    } else {
      ArenaPlan arena = plan_arena(blocks_);
      offsets_ = std::move(arena.offsets);
      plan_.bytes = arena.bytes;
    }
    for (std::size_t v = 0; v < value_block_.size(); ++v) {
      plan_.values.push_back(value_input_[v] >= 0 ? Place{Place::nowhere, value_input_[v]}
                                                  : place_of(value_block_[v]));
      plan_.gradients.push_back(place_of(gradient_block_[v]));
    }
    for (std::size_t n = 0; n < places_.size(); ++n) {
      NodePlaces& places = plan_.nodes[n];
      places.saved = place_of(places_[n].saved);
      places.forward_workspace = place_of(places_[n].forward_workspace);
      places.forward_scratch = place_of(places_[n].forward_scratch);
      places.backward_workspace = place_of(places_[n].backward_workspace);
      places.backward_scratch = place_of(places_[n].backward_scratch);
      for (std::size_t i = 0; i < places.input_gradients.size(); ++i) {
        places.input_gradients[i].written = place_of(places_[n].written[i]);
      }
    }
    plan_.loss_workspace = place_of(loss_block_);
    list_deaths();
    return std::move(plan_);
  }

  void place_apart() {
    for (const Lifetime& block : blocks_) {
      offsets_.push_back(plan_.bytes);
      plan_.bytes += (block.bytes + arena_alignment - 1) / arena_alignment * arena_alignment;
    }
  }

  void list_deaths() {
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      if (blocks_[b].last == never) continue;
      plan_.deaths.push_back({blocks_[b].last, offsets_[b], blocks_[b].bytes});
    }
    std::stable_sort(plan_.deaths.begin(), plan_.deaths.end(),
                     [](const Death& a, const Death& b) { return a.time < b.time; });
  }

  const PlanRequest& request_;
  int nodes_;
  std::vector<Lifetime> blocks_;
  std::vector<std::size_t> offsets_;
  std::vector<int> value_block_;
  std::vector<int> value_input_;  // the caller's memory that a value is, or sees; -1: none
  std::vector<int> last_read_;
  std::vector<int> gradient_block_;
  std::vector<NodeBlocks> places_;
  int loss_block_ = no_block;
  MemoryPlan plan_;
};

}  // namespace

MemoryPlan plan_memory(const PlanRequest& request) {
  return Planner(request).plan();
}

}  // namespace annulus
