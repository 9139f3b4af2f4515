// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "layers/cpu/dnnl.h"
#include "layers/cpu/folded_norm.h"
#include "layers/cpu/kept_parameters.h"
#include "layers/cpu/layout.h"
#include "layers/cpu/reorder.h"
#include "layers/cpu/transformed_weight.h"
#include "layers/cpu/weights.h"
#include "layers/ops.h"

namespace annulus::cpu {

// What the operations of one rank share.
struct Context {
  BackendOptions options;
  Engine engine;
  WeightCache weights{engine};
  FoldedCache folded{engine};
  TransformedCache transformed;
  KeptParameters kept{engine};
};

// What every operation here has: the request, the output's type, the memory it wants.
class CpuOp : public Op {
 public:
  CpuOp(Context& context, OpRequest request, ValueType output)
      : context_(context), request_(std::move(request)), output_(std::move(output)) {
    memory_.backward_reads_input.assign(request_.inputs.size(), false);
  }
  const ValueType& output() const override { return output_; }
  OpMemory memory() const override { return memory_; }
  std::string implementation() const override { return "own"; }

 protected:
  bool training() const { return request_.mode == Mode::train; }
  bool wants_gradient(std::size_t input) const {
    return training() && request_.input_gradient.at(input);
  }

  Context& context_;
  OpRequest request_;
  ValueType output_;
  OpMemory memory_;
};

}  // namespace annulus::cpu
