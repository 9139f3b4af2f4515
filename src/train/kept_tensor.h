// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/device.h"
#include "core/state.h"
#include "layers/ops.h"

namespace annulus {

// A parameter, or a moment of one, as named state: `data` is its part of a flat buffer on the
// device, in the order of `layout` (null: plain). Read and written in the logical order, so that
// checkpoints and hashes know nothing of layouts. `data`, `layout` and `device` must outlive it.
StateTensor kept_tensor(std::string name, const Shape& shape, float* data,
                        const ParameterLayout* layout, DeviceContext& device);

}  // namespace annulus
