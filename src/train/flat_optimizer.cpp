// SPDX-License-Identifier: Apache-2.0
#include "train/flat_optimizer.h"

#include <cmath>

#include "train/kept_tensor.h"

namespace annulus {

FlatOptimizer::FlatOptimizer(const OptimizerSetup& setup)
    : spec_(setup.spec),
      parameters_(setup.parameters.begin(), setup.parameters.end()),
      layout_of_(setup.layout_of),
      ranges_(decay_ranges(setup.parameters, setup.spec.weight_decay, setup.spec.decay_all)),
      device_(setup.device),
      ops_(make_update_ops(setup.device)) {
  if (!ranges_.empty()) elements_ = ranges_.back().end;
}

std::span<float> FlatOptimizer::add_moment(std::string name) {
  const auto count = static_cast<std::size_t>(elements_);
  Moment& moment =
      moments_.emplace_back(Moment{std::move(name), device_.allocate(count * sizeof(float))});
  if (count > 0) device_.zero(moment.values.data(), moment.values.bytes());
  return {moment.values.as<float>(), count};
}

UpdateReport FlatOptimizer::update(std::span<float> weights, std::span<const float> gradient,
                                   double scale, double lr, std::int64_t update) {
  require_equal(elements_, static_cast<std::int64_t>(weights.size()), "length of the weights");
  require_equal(weights.size(), gradient.size(), "length of the gradient");
  const GradientReport report = ops_->inspect(gradient, scale);
  const double norm = std::sqrt(report.sum_of_squares);
  if (!report.finite) return {norm, false};
  const bool clip = spec_.clip_norm > 0 && norm > spec_.clip_norm;
  const double factor = clip ? scale * (spec_.clip_norm / norm) : scale;
  apply({weights, gradient, static_cast<float>(factor), static_cast<float>(lr), update});
  return {norm, true};
}

void FlatOptimizer::add_to(NamedState& state) {
  for (const Moment& moment : moments_) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const Graph::Parameter& parameter = parameters_[i];
      state.add(kept_tensor("optimizer/" + moment.name + '/' + parameter.name, parameter.spec.shape,
                            moment.values.as<float>() + parameter.offset,
                            layout_of_(static_cast<int>(i)), device_));
    }
  }
}

std::size_t FlatOptimizer::bytes() const {
  std::size_t total = 0;
  for (const Moment& moment : moments_) total += moment.values.bytes();
  return total;
}

}  // namespace annulus
