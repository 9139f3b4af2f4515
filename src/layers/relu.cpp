// SPDX-License-Identifier: Apache-2.0
#include "layers/layer_kinds.h"

namespace annulus {
namespace {

// max(x, 0) of each element.
class Relu final : public Layer {
 public:
  Schema describe() override {
    Schema schema;
    kind_flag(schema, "relu", "negative elements become zero");
    return schema;
  }

  Shape infer(std::span<const Shape> inputs) override { return inputs[0]; }

  std::unique_ptr<Op> make_op(Backend& backend, const OpRequest& request) const override {
    return backend.relu(request);
  }
};

}  // namespace

std::unique_ptr<Layer> make_relu() {
  return std::make_unique<Relu>();
}

}  // namespace annulus
