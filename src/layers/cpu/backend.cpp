// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "layers/cpu/make_ops.h"
#include "layers/ops.h"

namespace annulus {
namespace {

// Makes an operation, with oneDNN's exceptions in the words of annulus.
template <class Make>
auto make(const std::string& layer, const Make& f) {
  try {
    return f();
  } catch (const dnnl::error& error) {
    cpu::fail_dnnl(fmt::format("layer {}: {}", layer, error.message), error.status);
  }
}

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(BackendOptions options) { context_.options = options; }

  ValueType plain(const Shape& shape) override {
    return cpu::make_value(shape, cpu::Format::plain);
  }

  std::unique_ptr<Op> conv2d(const OpRequest& request, const Conv2dDesc& desc) override {
    return make(request.name, [&] { return cpu::make_conv2d(context_, request, desc); });
  }
  bool fuses_tails() const override { return context_.options.tails; }
  std::unique_ptr<Op> linear(const OpRequest& request, const LinearDesc& desc) override {
    return make(request.name, [&] { return cpu::make_linear(context_, request, desc); });
  }
  std::unique_ptr<Op> batch_norm(const OpRequest& request, const BatchNormDesc& desc) override {
    return make(request.name, [&] { return cpu::make_batch_norm(context_, request, desc); });
  }
  std::unique_ptr<Op> pool2d(const OpRequest& request, const Pool2dDesc& desc) override {
    return cpu::make_pool2d(context_, request, desc);
  }
  std::unique_ptr<Op> relu(const OpRequest& request) override {
    return cpu::make_relu(context_, request);
  }
  std::unique_ptr<Op> dropout(const OpRequest& request, const DropoutDesc& desc) override {
    return cpu::make_dropout(context_, request, desc);
  }
  std::unique_ptr<Op> softmax(const OpRequest& request) override {
    return cpu::make_softmax(context_, request);
  }
  std::unique_ptr<Op> add(const OpRequest& request) override {
    return make(request.name, [&] { return cpu::make_add(context_, request); });
  }
  std::unique_ptr<Op> concat(const OpRequest& request) override {
    return cpu::make_concat(context_, request);
  }
  std::unique_ptr<Op> flatten(const OpRequest& request) override {
    return make(request.name, [&] { return cpu::make_flatten(context_, request); });
  }
  std::unique_ptr<Op> to_plain(const OpRequest& request) override {
    return make(request.name, [&] { return cpu::make_to_plain(context_, request); });
  }

  std::unique_ptr<LossOp> cross_entropy(const ValueType& prediction,
                                        const CrossEntropyDesc& desc) override {
    return cpu::make_cross_entropy(prediction, desc);
  }
  std::unique_ptr<LossOp> mean_squared_error(const ValueType& prediction) override {
    return cpu::make_mean_squared_error(prediction);
  }

  void accumulate(const ValueType& type, float* into, const float* from) override {
    cpu::accumulate(type, into, from);
  }
  void fill(std::byte* memory, std::size_t bytes, std::uint32_t pattern) override {
    cpu::fill(memory, bytes, pattern);
  }
  std::size_t bytes() const override {
    return context_.weights.bytes() + context_.folded.bytes() + context_.transformed.bytes();
  }

  void choose_parameter_layouts(bool choose) override { context_.kept.choose(choose); }
  const ParameterLayout* parameter_layout(int parameter) const override {
    return context_.kept.layout(parameter);
  }

 private:
  cpu::Context context_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(DeviceContext&, BackendOptions options) {
  return std::make_unique<CpuBackend>(options);
}

}  // namespace annulus
