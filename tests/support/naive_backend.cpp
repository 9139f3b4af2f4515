// SPDX-License-Identifier: Apache-2.0
#include "support/naive_backend.h"

#include <cstring>

#include "support/naive_op.h"

namespace annulus {
namespace {

class NaiveBackend final : public Backend {
 public:
  ValueType plain(const Shape& shape) override { return naive::plain_value(shape); }

  std::unique_ptr<Op> conv2d(const OpRequest& request, const Conv2dDesc& desc) override {
    return naive::conv2d(request, desc);
  }
  std::unique_ptr<Op> linear(const OpRequest& request, const LinearDesc& desc) override {
    return naive::linear(request, desc);
  }
  std::unique_ptr<Op> batch_norm(const OpRequest& request, const BatchNormDesc& desc) override {
    return naive::batch_norm(request, desc);
  }
  std::unique_ptr<Op> pool2d(const OpRequest& request, const Pool2dDesc& desc) override {
    return naive::pool2d(request, desc);
  }
  std::unique_ptr<Op> relu(const OpRequest& request) override { return naive::relu(request); }
  std::unique_ptr<Op> dropout(const OpRequest& request, const DropoutDesc& desc) override {
    return naive::dropout(request, desc);
  }
  std::unique_ptr<Op> softmax(const OpRequest& request) override { return naive::softmax(request); }
  std::unique_ptr<Op> add(const OpRequest& request) override { return naive::add(request); }
  std::unique_ptr<Op> concat(const OpRequest& request) override { return naive::concat(request); }
  std::unique_ptr<Op> flatten(const OpRequest& request) override {
    const Shape& shape = request.inputs[0].shape;
    return naive::view(request, {shape[0], shape.elements_from(1)});
  }
  std::unique_ptr<Op> to_plain(const OpRequest& request) override {
    return naive::view(request, request.inputs[0].shape);
  }
  std::unique_ptr<LossOp> cross_entropy(const ValueType& prediction,
                                        const CrossEntropyDesc& desc) override {
    return naive::cross_entropy(prediction, desc);
  }
  std::unique_ptr<LossOp> mean_squared_error(const ValueType& prediction) override {
    return naive::mean_squared_error(prediction);
  }

  void accumulate(const ValueType& type, float* into, const float* from) override {
    const std::int64_t count = type.shape.elements();
    for (std::int64_t i = 0; i < count; ++i) into[i] += from[i];
  }
  void fill(std::byte* memory, std::size_t bytes, std::uint32_t pattern) override {
    for (std::size_t i = 0; i + sizeof pattern <= bytes; i += sizeof pattern) {
      std::memcpy(memory + i, &pattern, sizeof pattern);
    }
  }
  std::size_t bytes() const override { return 0; }
};

}  // namespace

std::unique_ptr<Backend> make_naive_backend() {
  return std::make_unique<NaiveBackend>();
}

}  // namespace annulus
