// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "core/error.h"
#include "support/naive_op.h"

namespace annulus::naive {
namespace {

class CrossEntropy final : public LossOp {
 public:
  CrossEntropy(const ValueType& prediction, const CrossEntropyDesc& desc)
      : desc_(desc), batch_(prediction.shape[0]), classes_(prediction.shape[1]) {}

  std::size_t workspace() const override { return 0; }

  LossSums run(const float* prediction, const void* targets, double scale, float* gradient,
               std::byte*) override {
    LossSums sums;
    for (std::int64_t n = 0; n < batch_; ++n) {
      const float* x = prediction + n * classes_;
      float* dx = gradient == nullptr ? nullptr : gradient + n * classes_;
      const std::int64_t label = static_cast<const std::int32_t*>(targets)[n];
      if (desc_.ignore_index && label == *desc_.ignore_index) {
        for (std::int64_t c = 0; dx != nullptr && c < classes_; ++c) dx[c] = 0;
        continue;
      }
      require(label >= 0 && label < classes_, ErrorKind::bug, "label {} of {} classes", label,
              classes_);
      add_sample(x, label, scale, dx, sums);
    }
    return sums;
  }

 private:
  void add_sample(const float* x, std::int64_t label, double scale, float* dx,
                  LossSums& sums) const {
    double top = -std::numeric_limits<double>::infinity();
    for (std::int64_t c = 0; c < classes_; ++c) top = std::max<double>(top, x[c]);
    double sum = 0;
    for (std::int64_t c = 0; c < classes_; ++c) sum += std::exp(x[c] - top);
    std::int64_t better = 0;  // classes ahead of the label; of equal ones, those before it
    for (std::int64_t c = 0; c < classes_; ++c) {
      const double wanted = desc_.label_smoothing / static_cast<double>(classes_) +
                            (c == label ? 1 - desc_.label_smoothing : 0);
      const double log_p = x[c] - top - std::log(sum);
      sums.loss -= wanted * log_p;
      if (dx != nullptr) dx[c] = static_cast<float>(scale * (std::exp(log_p) - wanted));
      better += x[c] > x[label] || (x[c] == x[label] && c < label) ? 1 : 0;
    }
    sums.counted += 1;
    for (int i = 0; i < 2; ++i) sums.correct[i] += better < desc_.top_k[i] ? 1 : 0;
  }

  CrossEntropyDesc desc_;
  std::int64_t batch_;
  std::int64_t classes_;
};

class MeanSquaredError final : public LossOp {
 public:
  explicit MeanSquaredError(const ValueType& prediction)
      : batch_(prediction.shape[0]), size_(prediction.shape.elements_from(1)) {}

  std::size_t workspace() const override { return 0; }

  LossSums run(const float* prediction, const void* targets, double scale, float* gradient,
               std::byte*) override {
    LossSums sums;
    const auto* wanted = static_cast<const float*>(targets);
    const auto size = static_cast<double>(size_);
    for (std::int64_t i = 0; i < batch_ * size_; ++i) {
      const double error = static_cast<double>(prediction[i]) - wanted[i];
      sums.loss += error * error / size;
      sums.absolute_error += std::abs(error) / size;
      if (gradient != nullptr) gradient[i] = static_cast<float>(scale * 2 * error / size);
    }
    sums.counted = static_cast<double>(batch_);
    return sums;
  }

 private:
  std::int64_t batch_;
  std::int64_t size_;
};

}  // namespace

std::unique_ptr<LossOp> cross_entropy(const ValueType& prediction, const CrossEntropyDesc& desc) {
  return std::make_unique<CrossEntropy>(prediction, desc);
}

std::unique_ptr<LossOp> mean_squared_error(const ValueType& prediction) {
  return std::make_unique<MeanSquaredError>(prediction);
}

}  // namespace annulus::naive
