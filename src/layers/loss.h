// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "layers/model_spec.h"
#include "layers/ops.h"

namespace annulus {

// The k, at most two, whose top-k accuracy the loss reports: LossSums::correct[i] is for the i-th.
// Empty for a loss without classes; a k above the number of classes, always right, is left out.
std::vector<std::int64_t> reported_top_k(const LossSpec& spec, std::int64_t classes);

// The operation of a loss for predictions of the given type.
std::unique_ptr<LossOp> make_loss(Backend& backend, const LossSpec& spec, std::int64_t classes,
                                  const ValueType& prediction);

}  // namespace annulus
