// SPDX-License-Identifier: Apache-2.0
// Losses in double precision, one row a sample; rows are added up in the order of the samples.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/cpu/parallel.h"
#include "core/error.h"
#include "layers/cpu/make_ops.h"

namespace annulus::cpu {
namespace {

// The values of one sample's prediction, whatever their layout.
class Row {
 public:
  Row(const ChannelView& view, std::int64_t sample) : view_(view), sample_(sample) {}
  std::int64_t elements() const { return view_.channels * view_.positions; }
  // Where element e of the logical order lies.
  std::int64_t at(std::int64_t e) const {
    return view_.channel_offset(sample_, e / view_.positions) +
           e % view_.positions * view_.position_stride;
  }

 private:
  const ChannelView& view_;
  std::int64_t sample_;
};

// Adds up the shares of samples, which may be computed by several threads.
class RowLoss : public LossOp {
 public:
  explicit RowLoss(const ValueType& prediction)
      : view_(channel_view(prediction)), samples_(prediction.shape[0]) {}
  std::size_t workspace() const override {
    return static_cast<std::size_t>(samples_) * sizeof(LossSums);
  }

 protected:
  // Calls row(sample), which returns that sample's share, for all; the shares' sum in order.
  template <class F>
  LossSums sum_rows(std::byte* workspace, const F& row) const {
    auto* shares = reinterpret_cast<LossSums*>(workspace);
    parallel_for(samples_, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t sample = begin; sample < end; ++sample) shares[sample] = row(sample);
    });
    LossSums total;
    for (std::int64_t sample = 0; sample < samples_; ++sample) total += shares[sample];
    return total;
  }

  ChannelView view_;
  std::int64_t samples_;
};

class CrossEntropy final : public RowLoss {
 public:
  CrossEntropy(const ValueType& prediction, const CrossEntropyDesc& desc)
      : RowLoss(prediction), desc_(desc) {
    require_equal(std::int64_t{1}, view_.positions, "positions of a prediction of classes");
  }

  LossSums run(const float* prediction, const void* targets, double scale, float* gradient,
               std::byte* workspace) override {
    const auto* labels = static_cast<const std::int32_t*>(targets);
    check(labels);
    const LossSums total = sum_rows(workspace, [&](std::int64_t sample) {
      return loss_row(prediction, labels[sample], sample, scale, gradient);
    });
    if (gradient != nullptr) clear_padding(view_, gradient);
    return total;
  }

 private:
  bool ignored(std::int32_t label) const {
    return desc_.ignore_index.has_value() && *desc_.ignore_index == label;
  }

  void check(const std::int32_t* labels) const {
    for (std::int64_t sample = 0; sample < samples_; ++sample) {
      if (ignored(labels[sample])) continue;
      require(labels[sample] >= 0 && labels[sample] < view_.channels, ErrorKind::data,
              "label {} of sample {} of the batch is not one of the {} classes", labels[sample],
              sample, view_.channels);
    }
  }

  LossSums loss_row(const float* x, std::int32_t label, std::int64_t sample, double scale,
                    float* gradient) const {
    const Row row(view_, sample);
    LossSums share;
    if (ignored(label)) {
      for (std::int64_t c = 0; gradient != nullptr && c < view_.channels; ++c) {
        gradient[row.at(c)] = 0;
      }
      return share;
    }
    const LogSum log_sum = log_sum_of(x, row);
    const double uniform = desc_.label_smoothing / static_cast<double>(view_.channels);
    share.counted = 1;
    share.loss =
        log_sum.value - (1 - desc_.label_smoothing) * x[row.at(label)] - uniform * log_sum.total;
    for (int k = 0; k < 2; ++k) {
      share.correct[k] = std::isfinite(share.loss) && rank(x, row, label) < desc_.top_k[k] ? 1 : 0;
    }
    if (gradient == nullptr) return share;
    for (std::int64_t c = 0; c < view_.channels; ++c) {
      const double wanted = uniform + (c == label ? 1 - desc_.label_smoothing : 0);
      const double probability = std::exp(x[row.at(c)] - log_sum.value);
      gradient[row.at(c)] = static_cast<float>(scale * (probability - wanted));
    }
    return share;
  }

  struct LogSum {
    double value = 0;  // of the sum of exponentials
    double total = 0;  // plain sum
  };

  LogSum log_sum_of(const float* x, const Row& row) const {
    double highest = -std::numeric_limits<double>::infinity();
    for (std::int64_t c = 0; c < view_.channels; ++c) {
      highest = std::max<double>(highest, x[row.at(c)]);
    }
    double sum = 0;
    double total = 0;
    for (std::int64_t c = 0; c < view_.channels; ++c) {
      const double score = x[row.at(c)];
      sum += std::exp(score - highest);
      total += score;
    }
    return {highest + std::log(sum), total};
  }

  // How many classes come before the label: higher scores, and equal ones of lower ids.
  std::int64_t rank(const float* x, const Row& row, std::int64_t label) const {
    const float score = x[row.at(label)];
    std::int64_t before = 0;
    for (std::int64_t c = 0; c < view_.channels; ++c) {
      const float other = x[row.at(c)];
      if (other > score || (other == score && c < label)) ++before;
    }
    return before;
  }

  CrossEntropyDesc desc_;
};

class MeanSquaredError final : public RowLoss {
 public:
  using RowLoss::RowLoss;

  LossSums run(const float* prediction, const void* targets, double scale, float* gradient,
               std::byte* workspace) override {
    const auto* wanted = static_cast<const float*>(targets);
    const LossSums total = sum_rows(workspace, [&](std::int64_t sample) {
      return loss_row(prediction, wanted, sample, scale, gradient);
    });
    if (gradient != nullptr) clear_padding(view_, gradient);
    return total;
  }

 private:
  LossSums loss_row(const float* x, const float* wanted, std::int64_t sample, double scale,
                    float* gradient) const {
    const Row row(view_, sample);
    const std::int64_t elements = row.elements();
    const double slope = 2 * scale / static_cast<double>(elements);
    double squares = 0;
    double distances = 0;
    for (std::int64_t e = 0; e < elements; ++e) {
      const std::int64_t at = row.at(e);
      const double error = static_cast<double>(x[at]) - wanted[sample * elements + e];
      squares += error * error;
      distances += std::abs(error);
      if (gradient != nullptr) gradient[at] = static_cast<float>(slope * error);
    }
    LossSums share;
    share.counted = 1;
    share.loss = squares / static_cast<double>(elements);
    share.absolute_error = distances / static_cast<double>(elements);
    return share;
  }
};

}  // namespace

std::unique_ptr<LossOp> make_cross_entropy(const ValueType& prediction,
                                           const CrossEntropyDesc& desc) {
  return std::make_unique<CrossEntropy>(prediction, desc);
}

std::unique_ptr<LossOp> make_mean_squared_error(const ValueType& prediction) {
  return std::make_unique<MeanSquaredError>(prediction);
}

}  // namespace annulus::cpu
