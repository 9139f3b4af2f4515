// SPDX-License-Identifier: Apache-2.0
#include "layers/batch_norm.h"

#include "layers/layer_kinds.h"

namespace annulus {

Schema BatchNorm::describe() {
  Schema schema;
  kind_flag(schema, "batch_norm", "normalise each channel");
  schema.key("add", &addend_, "name of a layer that is added after normalising").present(&adds_);
  schema.key("relu", &relu_, "apply ReLU at the end");
  schema.key("epsilon", &epsilon_, "added to the variance, inside the root").above(0);
  schema
      .key("momentum", &momentum_,
           "weight of the new batch: running = (1 - momentum) running + momentum batch")
      .at_least(0)
      .at_most(1);
  initializer_key(schema, "init", &init_,
                  "start of the scale; default 1; 0 in the last norm of a residual block");
  return schema;
}

void BatchNorm::check(const Location& where, Problems& problems) const {
  if (adds_ && addend_.empty()) problems.add(where, "'add' must name a layer, not \"\"");
}

std::vector<std::string> BatchNorm::references() const {
  return addend_.empty() ? std::vector<std::string>{} : std::vector<std::string>{addend_};
}

Shape BatchNorm::infer(std::span<const Shape> inputs) {
  require(inputs[0].rank() >= 1, ErrorKind::usage, "takes (C, H, W) or (F), not a scalar");
  if (inputs.size() == 2 && !(inputs[0] == inputs[1])) {
    fail(ErrorKind::usage, "adds shapes that differ: {} and {}", to_string(inputs[0]),
         to_string(inputs[1]));
  }
  channels_ = inputs[0][0];
  return inputs[0];
}

std::vector<ParameterSpec> BatchNorm::parameters() const {
  return {{"scale", {channels_}, init_, 1, 1, false},
          {"shift", {channels_}, InitializerSpec::constant(0), 1, 1, false}};
}

std::vector<StatisticSpec> BatchNorm::statistics() const {
  return {{"running_mean", {channels_}, 0, momentum_},
          {"running_variance", {channels_}, 1, momentum_}};
}

std::unique_ptr<Op> BatchNorm::make_op(Backend& backend, const OpRequest& request) const {
  const Shape& shape = request.inputs[0].shape;
  if (request.mode == Mode::train && shape.elements() == channels_) {
    fail(ErrorKind::usage,
         "batch norm cannot train on one value a channel (a shard's batch of shape {}): use more "
         "samples a shard",
         to_string(shape));
  }
  return backend.batch_norm(request, desc());
}

std::unique_ptr<Layer> make_batch_norm() {
  return std::make_unique<BatchNorm>();
}

}  // namespace annulus
