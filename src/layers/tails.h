// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "layers/graph.h"
#include "layers/ops.h"

namespace annulus {

// For each node the convolution that can do it in its own pass while evaluating, -1 where there is
// none: a batch norm (with the sum and the ReLU that it has taken over) or a ReLU, which alone
// reads the result of that convolution. Layers that share parameters stay apart.
std::vector<int> find_tails(const Graph& graph);

// Such a convolution and what follows it, as one operation. `request` has the convolution's input,
// then the other inputs of `last`, and the parameters of both in that order.
std::unique_ptr<Op> make_with_tail(const Graph::Node& conv, const Graph::Node& last,
                                   Backend& backend, const OpRequest& request);

}  // namespace annulus
