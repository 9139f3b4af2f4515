// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/schema.h"
#include "core/shape.h"
#include "layers/initializer.h"
#include "layers/ops.h"

namespace annulus {

// A trainable tensor of a layer.
struct ParameterSpec {
  std::string name;  // "weight", "bias", "scale", "shift"
  Shape shape;
  InitializerSpec initializer;
  std::int64_t fan_in = 1;  // for Xavier and He
  std::int64_t fan_out = 1;
  bool decay = true;  // weight decay applies: not to biases and norm parameters, unless decay_all
};

// A running statistic of a layer, which follows the batches' statistics and is not trained.
struct StatisticSpec {
  std::string name;  // "running_mean", "running_variance"
  Shape shape;
  float initial = 0;
  double momentum = 0.1;  // running = (1 - momentum) running + momentum batch
};

// One kind of node, device-neutral: its keys, shapes, parameters, and the operation that does it.
// Shapes are those of one sample, without the batch: (C, H, W) or (F).
class Layer {
 public:
  virtual ~Layer() = default;

  // The keys of this layer's table other than the common ones (name, from, share).
  virtual Schema describe() = 0;
  // Checks what the keys mean together; called once after they are filled.
  virtual void check(const Location& where, Problems& problems) const;

  // Names of values that the layer's own keys ask for (`add = "shortcut"`); they follow those of
  // `from` as inputs.
  virtual std::vector<std::string> references() const { return {}; }

  // The output's shape. Error (usage) whose message says what does not fit, with both values:
  // "kernel 3 > padded input 1".
  virtual Shape infer(std::span<const Shape> inputs) = 0;
  // How many inputs it takes.
  virtual int min_inputs() const { return 1; }
  virtual int max_inputs() const { return 1; }

  // After infer:
  virtual std::vector<ParameterSpec> parameters() const { return {}; }
  virtual std::vector<StatisticSpec> statistics() const { return {}; }
  // Multiply-accumulates of a forward pass of one sample; 0 for layers that only move data.
  virtual std::int64_t macs() const { return 0; }
  virtual std::unique_ptr<Op> make_op(Backend& backend, const OpRequest& request) const = 0;
};

// A kind of layer: the key that names it in a config ("conv"), and how to make one.
struct LayerKind {
  std::string key;
  std::string doc;  // one line for the reference
  std::unique_ptr<Layer> (*make)();
};

// All kinds, in the order of the reference. A new layer is one more row (layer_kinds.cpp).
std::span<const LayerKind> layer_kinds();

}  // namespace annulus
