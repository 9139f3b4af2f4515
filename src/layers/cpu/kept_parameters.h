// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>

#include "layers/cpu/dnnl.h"
#include "layers/ops.h"

namespace annulus::cpu {

// How the parameters of a rank lie in the flat buffers: plain, or as the forward primitive of the
// first operation that was allowed to choose wants them.
class KeptParameters {
 public:
  explicit KeptParameters(const Engine& engine) : engine_(engine) {}

  void choose(bool choose) { choosing_ = choose; }
  // The descriptor of a parameter in the flat buffers. A choice takes `wanted` where that is the
  // same elements in another order, without padding.
  const Desc& keep(int parameter, const Desc& plain, const Desc& wanted);
  // Null: plain, or not known yet.
  const ParameterLayout* layout(int parameter) const;

 private:
  class Order;
  struct Kept {
    Desc desc;
    std::shared_ptr<const ParameterLayout> order;  // null: plain
  };

  const Engine& engine_;
  bool choosing_ = false;
  std::map<int, Kept> kept_;
};

}  // namespace annulus::cpu
