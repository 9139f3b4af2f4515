// SPDX-License-Identifier: Apache-2.0
#include "layers/layer_kinds.h"

namespace annulus {
namespace {

// Sum of two or more values of one shape.
class Add final : public Layer {
 public:
  Schema describe() override {
    Schema schema;
    schema.key("add", &names_, "names of the layers to add, two or more").required();
    return schema;
  }

  std::vector<std::string> references() const override { return names_; }
  int min_inputs() const override { return 2; }
  int max_inputs() const override { return max_joined; }

  Shape infer(std::span<const Shape> inputs) override {
    for (const Shape& shape : inputs) {
      if (shape == inputs[0]) continue;
      fail(ErrorKind::usage, "adds shapes that differ: {} and {}", to_string(inputs[0]),
           to_string(shape));
    }
    return inputs[0];
  }

  std::unique_ptr<Op> make_op(Backend& backend, const OpRequest& request) const override {
    return backend.add(request);
  }

 private:
  std::vector<std::string> names_;
};

}  // namespace

std::unique_ptr<Layer> make_add() {
  return std::make_unique<Add>();
}

}  // namespace annulus
