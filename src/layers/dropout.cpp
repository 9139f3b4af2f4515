// SPDX-License-Identifier: Apache-2.0
#include "layers/layer_kinds.h"

namespace annulus {
namespace {

// Inverted dropout: kept elements are divided by 1 - rate while training; nothing in evaluation.
class Dropout final : public Layer {
 public:
  Schema describe() override {
    Schema schema;
    schema.key("dropout", &rate_, "share of the elements that are set to zero")
        .at_least(0)
        .below(1)
        .required();
    return schema;
  }

  Shape infer(std::span<const Shape> inputs) override { return inputs[0]; }

  std::unique_ptr<Op> make_op(Backend& backend, const OpRequest& request) const override {
    return backend.dropout(request, {.rate = rate_});
  }

 private:
  double rate_ = 0.5;
};

}  // namespace

std::unique_ptr<Layer> make_dropout() {
  return std::make_unique<Dropout>();
}

}  // namespace annulus
