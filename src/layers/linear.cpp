// SPDX-License-Identifier: Apache-2.0
#include "layers/layer_kinds.h"

namespace annulus {
namespace {

// y = W x + b; parameters weight (out, in) and bias (out).
class Linear final : public Layer {
 public:
  Schema describe() override {
    Schema schema;
    schema.key("linear", &features_, "output features")
        .at_least(1)
        .at_most(max_layer_size)
        .required();
    schema.key("bias", &bias_, "add a bias to each output feature");
    initializer_key(schema, "weight_init", &weight_init_, "start of the weights; default \"he\"");
    initializer_key(schema, "bias_init", &bias_init_, "start of the biases; default 0");
    return schema;
  }

  Shape infer(std::span<const Shape> inputs) override {
    in_features_ = inputs[0].elements();
    return {features_};
  }

  std::vector<ParameterSpec> parameters() const override {
    std::vector<ParameterSpec> parameters = {
        {"weight", {features_, in_features_}, weight_init_, in_features_, features_, true}};
    if (bias_) parameters.push_back({"bias", {features_}, bias_init_, 1, 1, false});
    return parameters;
  }

  std::int64_t macs() const override { return Shape{features_, in_features_}.elements(); }

  std::unique_ptr<Op> make_op(Backend& backend, const OpRequest& request) const override {
    return backend.linear(request, {.out_features = features_, .bias = bias_});
  }

 private:
  std::int64_t features_ = 1;
  bool bias_ = true;
  InitializerSpec weight_init_;
  InitializerSpec bias_init_ = InitializerSpec::constant(0);
  std::int64_t in_features_ = 0;
};

}  // namespace

std::unique_ptr<Layer> make_linear() {
  return std::make_unique<Linear>();
}

}  // namespace annulus
