// SPDX-License-Identifier: Apache-2.0
#include "layers/tails.h"

#include "layers/batch_norm.h"
#include "layers/conv2d.h"

namespace annulus {

std::vector<int> find_tails(const Graph& graph) {
  std::vector<int> convolutions;
  for (const Graph::Node& node : graph.nodes()) {
    const int value = node.inputs[0];
    const Graph::ValueInfo& info = graph.values()[static_cast<std::size_t>(value)];
    const auto fits = [&] {
      if (node.kind != "batch_norm" && node.kind != "relu") return false;
      if (info.producer < 0 || info.readers.size() != 1 || value == graph.output()) return false;
      const Graph::Node& before = graph.nodes()[static_cast<std::size_t>(info.producer)];
      return before.kind == "conv" && before.uses == 1 && node.uses == 1;
    };
    convolutions.push_back(fits() ? info.producer : -1);
  }
  return convolutions;
}

std::unique_ptr<Op> make_with_tail(const Graph::Node& conv, const Graph::Node& last,
                                   Backend& backend, const OpRequest& request) {
  Conv2dTail tail;
  tail.relu = true;
  if (const auto* norm = dynamic_cast<const BatchNorm*>(last.layer)) {
    const BatchNormDesc desc = norm->desc();
    tail = {.norm_epsilon = desc.epsilon, .add = desc.add, .relu = desc.relu};
  }
  return dynamic_cast<const Conv2d&>(*conv.layer).make_op(backend, request, tail);
}

}  // namespace annulus
