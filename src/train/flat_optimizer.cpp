// SPDX-License-Identifier: Apache-2.0
#include "train/flat_optimizer.h"

#include <cmath>

namespace annulus {

FlatOptimizer::FlatOptimizer(const OptimizerSetup& setup)
    : spec_(setup.spec),
      parameters_(setup.parameters.begin(), setup.parameters.end()),
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

StateTensor FlatOptimizer::state_of(const Graph::Parameter& parameter, const std::string& moment,
                                    float* data) {
  StateTensor tensor{
      "optimizer/" + moment + "/" + parameter.name, parameter.spec.shape, DType::f32, {}, {}};
  DeviceContext* device = &device_;
  tensor.read = [device, data](std::span<std::byte> to) {
    device->copy(to.data(), data, to.size());
    device->synchronize();
  };
  tensor.write = [device, data](std::span<const std::byte> from) {
    device->copy(data, from.data(), from.size());
    device->synchronize();
  };
  return tensor;
}

void FlatOptimizer::add_to(NamedState& state) {
  for (const Moment& moment : moments_) {
    for (const Graph::Parameter& parameter : parameters_) {
      state.add(state_of(parameter, moment.name, moment.values.as<float>() + parameter.offset));
    }
  }
}

std::size_t FlatOptimizer::bytes() const {
  std::size_t total = 0;
  for (const Moment& moment : moments_) total += moment.values.bytes();
  return total;
}

}  // namespace annulus
