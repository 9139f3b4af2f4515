// SPDX-License-Identifier: Apache-2.0
#include "layers/layer_kinds.h"
#include "layers/window.h"

namespace annulus {
namespace {

// Maximum or average over windows of each channel; output (C, H', W').
class Pool2d final : public Layer {
 public:
  explicit Pool2d(PoolKind kind) : kind_(kind) {}

  Schema describe() override {
    Schema schema;
    const bool max = kind_ == PoolKind::max;
    extent_key(schema, max ? "max_pool" : "avg_pool", &window_.kernel, 1,
               "height and width of the window")
        .required();
    extent_key(schema, "stride", &window_.stride, 1, "step of the window; default: its size")
        .present(&has_stride_);
    padding_key(schema, &window_);
    schema.key("ceil_mode", &window_.ceil_mode,
               "round the output's size up; a window that would start in the padding is left out");
    if (!max) {
      schema.key("count_include_pad", &count_padding_, "count the padding as zeros in the average");
    }
    return schema;
  }

  void check(const Location& where, Problems& problems) const override {
    if (window_.padding.h < window_.kernel.h && window_.padding.w < window_.kernel.w) return;
    problems.add(where, fmt::format("'padding' {} >= kernel {}: a window would lie in the padding "
                                    "alone; use a padding below the kernel",
                                    to_string(window_.padding), to_string(window_.kernel)));
  }

  Shape infer(std::span<const Shape> inputs) override {
    require_image(inputs[0]);
    if (!has_stride_) window_.stride = window_.kernel;
    fit_ = fit_window(window_, inputs[0]);
    return {inputs[0][0], fit_.output.h, fit_.output.w};
  }

  std::unique_ptr<Op> make_op(Backend& backend, const OpRequest& request) const override {
    return backend.pool2d(request, {.kind = kind_,
                                    .kernel = window_.kernel,
                                    .stride = window_.stride,
                                    .padding = fit_.padding,
                                    .output = fit_.output,
                                    .count_padding = count_padding_});
  }

 private:
  PoolKind kind_;
  WindowSpec window_;
  bool has_stride_ = false;
  bool count_padding_ = false;
  WindowFit fit_;
};

// Average of each channel; output (C, 1, 1).
class GlobalAveragePool final : public Layer {
 public:
  Schema describe() override {
    Schema schema;
    kind_flag(schema, "global_avg_pool", "average each channel over the whole image");
    return schema;
  }

  Shape infer(std::span<const Shape> inputs) override {
    require_image(inputs[0]);
    image_ = {inputs[0][1], inputs[0][2]};
    return {inputs[0][0], 1, 1};
  }

  std::unique_ptr<Op> make_op(Backend& backend, const OpRequest& request) const override {
    Pool2dDesc desc;
    desc.kind = PoolKind::average;
    desc.kernel = image_;
    desc.stride = image_;
    return backend.pool2d(request, desc);
  }

 private:
  Extent2d image_;
};

}  // namespace

std::unique_ptr<Layer> make_max_pool() {
  return std::make_unique<Pool2d>(PoolKind::max);
}

std::unique_ptr<Layer> make_avg_pool() {
  return std::make_unique<Pool2d>(PoolKind::average);
}

std::unique_ptr<Layer> make_global_avg_pool() {
  return std::make_unique<GlobalAveragePool>();
}

}  // namespace annulus
