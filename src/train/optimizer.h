// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/buffer.h"
#include "core/schema.h"
#include "core/state.h"
#include "core/update_ops.h"
#include "layers/graph.h"
#include "layers/ops.h"
#include "train/schedule.h"

namespace annulus {

// [optimizer]
struct OptimizerSpec {
  std::string kind = "sgd";  // or adamw
  double lr = 0.1;
  std::string lr_scale = "none";  // linear: lr times batch.global / lr_base_batch
  std::int64_t lr_base_batch = 256;
  double momentum = 0;
  bool nesterov = false;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decay_all = false;  // biases and norm parameters too
  double clip_norm = 0;    // global norm of the gradient; 0: off
  double clip_value = 0;   // of each element; 0: off
  ScheduleSpec schedule;
};

Schema describe(OptimizerSpec& spec);
// Checks what the keys of [optimizer] and [optimizer.schedule] mean together; `table` is
// [optimizer] as written, for the places.
void check(const OptimizerSpec& spec, const Value& table, Problems& problems);

// The learning rate that the schedule starts from: `lr`, scaled by the global batch where lr_scale
// says so. The only place that scales it.
double base_lr(const OptimizerSpec& spec, std::int64_t global_batch);

// What one update did.
struct UpdateReport {
  double gradient_norm = 0;  // of the mean gradient, before clipping
  bool applied = true;       // false: skipped, since the gradient was not finite
};

// Turns a summed gradient into new weights: unscale, look at it, clip, decay, and one pass over the
// flat buffers. Owns its moments.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // One update with the gradient `gradient` * `scale`, at learning rate `lr`. Nothing is changed
  // where the gradient is not finite. `update` counts applied updates from 0. Error (bug) where the
  // lengths are not the graph's flat_elements(). Nothing is allocated after the first call.
  virtual UpdateReport update(std::span<float> weights, std::span<const float> gradient,
                              double scale, double lr, std::int64_t update) = 0;
  // Adds its moments under "optimizer/velocity/conv1/weight".
  virtual void add_to(NamedState& state) = 0;
  virtual std::size_t bytes() const = 0;
};

// How a parameter is kept in the flat buffers (Replica::layout_of); null: plain.
using LayoutOf = std::function<const ParameterLayout*(int parameter)>;
inline const ParameterLayout* plain_layout(int /*parameter*/) {
  return nullptr;
}

// An optimizer for parameters that lie one after another in the flat buffers, as a Graph places
// them. A new kind is one more file and one more row (optimizer.cpp).
std::unique_ptr<Optimizer> make_optimizer(const OptimizerSpec& spec,
                                          std::span<const Graph::Parameter> parameters,
                                          const LayoutOf& layout_of, DeviceContext& device);

// Moments that such an optimizer keeps of each parameter: its memory, in floats a parameter.
std::int64_t moments_of(const OptimizerSpec& spec);

// Weight decay of each stretch of the flat buffers: parameters whose layer says so (not biases and
// norm parameters) or, with `decay_all`, all of them. Neighbours of equal decay are one range.
std::vector<DecayRange> decay_ranges(std::span<const Graph::Parameter> parameters,
                                     double weight_decay, bool decay_all);

}  // namespace annulus
