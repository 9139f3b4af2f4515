// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/schema.h"
#include "layers/layer.h"

namespace annulus {

struct ModelInput {
  std::string name;  // "input" where the model has one
  Shape shape;       // of a sample: (C, H, W) or (F)
};

// One entry of model.layers as written.
struct LayerSpec {
  std::string kind;
  std::string name;               // unique; default: kind and a running number from 1 ("conv1")
  std::vector<std::string> from;  // names of layers or inputs; "" is the layer before (or input)
  std::string share;              // take the parameters of that layer
  std::unique_ptr<Layer> layer;
  Location where;
};

struct LossSpec {
  std::string kind = "cross_entropy";  // or mean_squared_error
  double label_smoothing = 0;
  std::optional<std::int64_t> ignore_index;
  std::vector<std::int64_t> top_k = {1, 5};  // one or two; those above `classes` are left out
  Location where;                            // of [loss]
};

// [model] and [loss]. `layers` refer to their inputs by `from` alone: reading a table puts the
// names that the layer's own keys give (`add`, `concat`) there, and "" where a layer follows the
// one before.
struct ModelSpec {
  std::vector<ModelInput> inputs;
  std::int64_t classes = 0;
  std::vector<LayerSpec> layers;
  LossSpec loss;
  Location where;  // of [model]
};

// The keys of [model], after expand_blocks: input (a list, or a table of lists by name), classes,
// layers.
Schema describe(ModelSpec& spec);
// The keys of one layer's table: those of its kind (where `layer` is set) and those that any kind
// has (name, from, share).
Schema describe(LayerSpec& spec);
// The keys of [loss].
Schema describe(LossSpec& spec);

}  // namespace annulus
