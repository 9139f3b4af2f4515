// SPDX-License-Identifier: Apache-2.0
// The operations of this backend, one file each. They trust the request: layers check shapes.
#pragma once

#include <memory>

#include "layers/cpu/context.h"
#include "layers/ops.h"

namespace annulus::cpu {

std::unique_ptr<Op> make_conv2d(Context& context, const OpRequest& request, const Conv2dDesc& desc);
// Null where the convolution is none that annulus does by itself. winograd_conv2d.cpp
std::unique_ptr<Op> make_winograd_conv2d(Context& context, const OpRequest& request,
                                         const Conv2dDesc& desc);
std::unique_ptr<Op> make_linear(Context& context, const OpRequest& request, const LinearDesc& desc);
std::unique_ptr<Op> make_batch_norm(Context& context, const OpRequest& request,
                                    const BatchNormDesc& desc);
std::unique_ptr<Op> make_pool2d(Context& context, const OpRequest& request, const Pool2dDesc& desc);
std::unique_ptr<Op> make_relu(Context& context, const OpRequest& request);
std::unique_ptr<Op> make_dropout(Context& context, const OpRequest& request,
                                 const DropoutDesc& desc);
std::unique_ptr<Op> make_softmax(Context& context, const OpRequest& request);
std::unique_ptr<Op> make_add(Context& context, const OpRequest& request);
std::unique_ptr<Op> make_concat(Context& context, const OpRequest& request);
std::unique_ptr<Op> make_flatten(Context& context, const OpRequest& request);
std::unique_ptr<Op> make_to_plain(Context& context, const OpRequest& request);

std::unique_ptr<LossOp> make_cross_entropy(const ValueType& prediction,
                                           const CrossEntropyDesc& desc);
std::unique_ptr<LossOp> make_mean_squared_error(const ValueType& prediction);

// into += from, elementwise; padding stays zero.
void accumulate(const ValueType& type, float* into, const float* from);
// Copies of `pattern` in `bytes` of memory.
void fill(std::byte* memory, std::size_t bytes, std::uint32_t pattern);

}  // namespace annulus::cpu
