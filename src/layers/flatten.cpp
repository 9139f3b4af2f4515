// SPDX-License-Identifier: Apache-2.0
#include "layers/layer_kinds.h"

namespace annulus {
namespace {

// (C, H, W) to (CHW).
class Flatten final : public Layer {
 public:
  Schema describe() override {
    Schema schema;
    kind_flag(schema, "flatten", "all elements of a sample as one vector");
    return schema;
  }

  Shape infer(std::span<const Shape> inputs) override { return {inputs[0].elements()}; }

  std::unique_ptr<Op> make_op(Backend& backend, const OpRequest& request) const override {
    return backend.flatten(request);
  }
};

}  // namespace

std::unique_ptr<Layer> make_flatten() {
  return std::make_unique<Flatten>();
}

}  // namespace annulus
