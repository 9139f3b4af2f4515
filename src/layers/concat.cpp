// SPDX-License-Identifier: Apache-2.0
#include "layers/layer_kinds.h"

namespace annulus {
namespace {

// Joins two or more values along the channels or features; the other axes are equal.
class Concat final : public Layer {
 public:
  Schema describe() override {
    Schema schema;
    schema.key("concat", &names_, "names of the layers to join, two or more").required();
    return schema;
  }

  std::vector<std::string> references() const override { return names_; }
  int min_inputs() const override { return 2; }
  int max_inputs() const override { return max_joined; }

  Shape infer(std::span<const Shape> inputs) override {
    Shape joined = inputs[0];
    joined[0] = 0;
    for (Shape shape : inputs) {
      const Shape whole = shape;
      joined[0] += shape[0];
      shape[0] = joined[0];
      if (shape == joined) continue;
      fail(ErrorKind::usage, "joins shapes that differ in more than channels: {} and {}",
           to_string(inputs[0]), to_string(whole));
    }
    return joined;
  }

  std::unique_ptr<Op> make_op(Backend& backend, const OpRequest& request) const override {
    return backend.concat(request);
  }

 private:
  std::vector<std::string> names_;
};

}  // namespace

std::unique_ptr<Layer> make_concat() {
  return std::make_unique<Concat>();
}

}  // namespace annulus
