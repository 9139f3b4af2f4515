// SPDX-License-Identifier: Apache-2.0
#include "layers/layer_kinds.h"

namespace annulus {
namespace {

// exp(x) / sum of exp(x), over the channels or features.
class Softmax final : public Layer {
 public:
  Schema describe() override {
    Schema schema;
    kind_flag(schema, "softmax", "over the channels or features");
    return schema;
  }

  Shape infer(std::span<const Shape> inputs) override { return inputs[0]; }

  std::unique_ptr<Op> make_op(Backend& backend, const OpRequest& request) const override {
    return backend.softmax(request);
  }
};

}  // namespace

std::unique_ptr<Layer> make_softmax() {
  return std::make_unique<Softmax>();
}

}  // namespace annulus
