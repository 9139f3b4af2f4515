// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "layers/graph.h"

namespace annulus {

// Peephole fusions that every backend can do as one node: a batch norm takes over the sum, the
// ReLU, or the sum and then the ReLU that alone read its result. The node keeps the name and the
// parameters of the batch norm and stands where the last of its parts stood.
//
// `nodes` are in the order of execution with their inputs and outputs set; `values` and `output`
// are renumbered. Producers and readers are not kept up.
void fuse_nodes(std::vector<Graph::Node>& nodes, std::vector<Graph::ValueInfo>& values,
                int& output);

}  // namespace annulus
