// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "layers/ops.h"

namespace annulus::naive {

class PlainLayout final : public Layout {
 public:
  explicit PlainLayout(std::size_t bytes) : bytes_(bytes) {}
  std::size_t bytes() const override { return bytes_; }

 private:
  std::size_t bytes_;
};

inline ValueType plain_value(const Shape& shape) {
  return {shape, std::make_shared<PlainLayout>(static_cast<std::size_t>(shape.elements()) *
                                               sizeof(float))};
}

// A value's extents as images; vectors are images of one pixel.
struct Dims {
  explicit Dims(const Shape& shape)
      : n(shape[0]),
        c(shape[1]),
        h(shape.rank() == 4 ? shape[2] : 1),
        w(shape.rank() == 4 ? shape[3] : 1) {}
  std::int64_t pixels() const { return h * w; }
  std::int64_t elements() const { return n * c * h * w; }
  std::int64_t at(std::int64_t in, std::int64_t ic, std::int64_t ih, std::int64_t iw) const {
    return ((in * c + ic) * h + ih) * w + iw;
  }
  bool inside(std::int64_t ih, std::int64_t iw) const {
    return ih >= 0 && ih < h && iw >= 0 && iw < w;
  }
  std::int64_t n, c, h, w;
};

// What all operations have in common.
class NaiveOp : public Op {
 public:
  NaiveOp(OpRequest request, const Shape& output)
      : request_(std::move(request)),
        output_(plain_value(output)),
        in_(request_.inputs[0].shape),
        out_(output) {
    memory_.backward_reads_input.assign(request_.inputs.size(), false);
  }
  const ValueType& output() const override { return output_; }
  OpMemory memory() const override { return memory_; }
  std::string implementation() const override { return "naive"; }

 protected:
  bool training() const { return request_.mode == Mode::train; }

  OpRequest request_;
  ValueType output_;
  Dims in_;
  Dims out_;
  OpMemory memory_;
};

std::unique_ptr<Op> conv2d(const OpRequest& request, const Conv2dDesc& desc);
std::unique_ptr<Op> linear(const OpRequest& request, const LinearDesc& desc);
std::unique_ptr<Op> batch_norm(const OpRequest& request, const BatchNormDesc& desc);
std::unique_ptr<Op> pool2d(const OpRequest& request, const Pool2dDesc& desc);
std::unique_ptr<Op> relu(const OpRequest& request);
std::unique_ptr<Op> dropout(const OpRequest& request, const DropoutDesc& desc);
std::unique_ptr<Op> softmax(const OpRequest& request);
std::unique_ptr<Op> add(const OpRequest& request);
std::unique_ptr<Op> concat(const OpRequest& request);
std::unique_ptr<Op> view(const OpRequest& request, const Shape& output);
std::unique_ptr<LossOp> cross_entropy(const ValueType& prediction, const CrossEntropyDesc& desc);
std::unique_ptr<LossOp> mean_squared_error(const ValueType& prediction);

}  // namespace annulus::naive
