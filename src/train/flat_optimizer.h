// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "train/optimizer.h"

namespace annulus {

// What an optimizer is made from.
struct OptimizerSetup {
  const OptimizerSpec& spec;
  std::span<const Graph::Parameter> parameters;
  const LayoutOf& layout_of;
  DeviceContext& device;
};

std::unique_ptr<Optimizer> make_sgd(const OptimizerSetup& setup);
std::unique_ptr<Optimizer> make_adamw(const OptimizerSetup& setup);

// What optimizers have in common: look at the gradient, clip, and keep the moments. The device must
// outlive it.
class FlatOptimizer : public Optimizer {
 public:
  UpdateReport update(std::span<float> weights, std::span<const float> gradient, double scale,
                      double lr, std::int64_t update) final;
  void add_to(NamedState& state) final;
  std::size_t bytes() const final;

 protected:
  // The flat buffers of one update and what to do with them.
  struct Step {
    std::span<float> weights;
    std::span<const float> gradient;
    float scale = 1;  // unscaling and norm clipping in one factor
    float lr = 0;
    std::int64_t update = 0;
  };

  explicit FlatOptimizer(const OptimizerSetup& setup);
  // One more moment of each parameter, zero at the start: "velocity".
  std::span<float> add_moment(std::string name);

  const OptimizerSpec& spec() const { return spec_; }
  std::span<const DecayRange> ranges() const { return ranges_; }
  UpdateOps& ops() { return *ops_; }

 private:
  virtual void apply(const Step& step) = 0;
  struct Moment {
    std::string name;
    Buffer values;
  };

  OptimizerSpec spec_;
  std::vector<Graph::Parameter> parameters_;
  LayoutOf layout_of_;
  std::vector<DecayRange> ranges_;
  DeviceContext& device_;
  std::unique_ptr<UpdateOps> ops_;
  std::int64_t elements_ = 0;
  std::vector<Moment> moments_;
};

}  // namespace annulus
