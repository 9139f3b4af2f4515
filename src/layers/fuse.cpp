// SPDX-License-Identifier: Apache-2.0
#include "layers/fuse.h"

#include <algorithm>

#include "layers/batch_norm.h"

namespace annulus {
namespace {

class Fuser {
 public:
  Fuser(std::vector<Graph::Node>& nodes, std::size_t values, int output)
      : nodes_(nodes), reads_(values, 0), producer_(values, -1) {
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      for (int value : nodes[n].inputs) ++reads_[at(value)];
      producer_[at(nodes[n].output)] = static_cast<int>(n);
    }
    ++reads_[at(output)];
  }

  // Tries to let a batch norm take over node `n`.
  void visit(int n) {
    Graph::Node& node = nodes_[at(n)];
    if (node.kind == "relu") {
      const int norm = norm_of(node.inputs[0]);
      if (norm >= 0 && layer_of(norm).can_relu()) {
        layer_of(norm).fuse_relu();
        take_over(norm, n);
      }
    } else if (node.kind == "add" && node.inputs.size() == 2) {
      // The later of two candidates: the other's result then waits the shorter.
      const int first = norm_of(node.inputs[0]);
      const int second = norm_of(node.inputs[1]);
      const int norm = std::max(can_add(first) ? first : -1, can_add(second) ? second : -1);
      if (norm < 0) return;
      const int other = node.inputs[norm == first ? 1 : 0];
      layer_of(norm).fuse_add();
      nodes_[at(norm)].inputs.push_back(other);
      take_over(norm, n);
    }
  }

 private:
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }

  // The batch norm whose result is `value` and is read once; -1 where there is none.
  int norm_of(int value) const {
    const int node = producer_[at(value)];
    const bool norm = node >= 0 && reads_[at(value)] == 1 && nodes_[at(node)].kind == "batch_norm";
    return norm ? node : -1;
  }
  BatchNorm& layer_of(int node) const { return dynamic_cast<BatchNorm&>(*nodes_[at(node)].layer); }
  bool can_add(int node) const { return node >= 0 && layer_of(node).can_add(); }

  // Moves batch norm `norm` to the place of node `n`, whose result becomes its own.
  void take_over(int norm, int n) {
    const int output = nodes_[at(n)].output;
    nodes_[at(n)] = std::move(nodes_[at(norm)]);
    nodes_[at(n)].output = output;
    nodes_[at(norm)] = Graph::Node{};
    producer_[at(output)] = n;
  }

  std::vector<Graph::Node>& nodes_;
  std::vector<int> reads_;
  std::vector<int> producer_;
};

// Drops values that nothing produces any more, and names each after its node.
void renumber(std::vector<Graph::Node>& nodes, std::vector<Graph::ValueInfo>& values, int& output) {
  std::vector<Graph::ValueInfo> kept;
  std::vector<int> number(values.size(), -1);
  const auto keep = [&](int value, const std::string& name) {
    number[static_cast<std::size_t>(value)] = static_cast<int>(kept.size());
    kept.push_back(values[static_cast<std::size_t>(value)]);
    kept.back().name = name;
  };
  // Inputs come first and have no producer; all others are some node's output.
  const std::size_t inputs = values.size() - nodes.size();
  for (std::size_t v = 0; v < inputs; ++v) keep(static_cast<int>(v), values[v].name);
  std::erase_if(nodes, [](const Graph::Node& node) { return node.layer == nullptr; });
  for (const Graph::Node& node : nodes) keep(node.output, node.name);
  for (Graph::Node& node : nodes) {
    for (int& value : node.inputs) value = number[static_cast<std::size_t>(value)];
    node.output = number[static_cast<std::size_t>(node.output)];
  }
  output = number[static_cast<std::size_t>(output)];
  values = std::move(kept);
}

}  // namespace

void fuse_nodes(std::vector<Graph::Node>& nodes, std::vector<Graph::ValueInfo>& values,
                int& output) {
  Fuser fuser(nodes, values.size(), output);
  for (std::size_t n = 0; n < nodes.size(); ++n) fuser.visit(static_cast<int>(n));
  renumber(nodes, values, output);
}

}  // namespace annulus
