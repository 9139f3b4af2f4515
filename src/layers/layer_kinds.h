// SPDX-License-Identifier: Apache-2.0
// One function a kind of layer, each defined in the file of that kind.
#pragma once

#include <memory>
#include <string>

#include "core/schema.h"
#include "layers/layer.h"

namespace annulus {

std::unique_ptr<Layer> make_conv2d();
std::unique_ptr<Layer> make_linear();
std::unique_ptr<Layer> make_batch_norm();
std::unique_ptr<Layer> make_max_pool();
std::unique_ptr<Layer> make_avg_pool();
std::unique_ptr<Layer> make_global_avg_pool();
std::unique_ptr<Layer> make_relu();
std::unique_ptr<Layer> make_dropout();
std::unique_ptr<Layer> make_softmax();
std::unique_ptr<Layer> make_add();
std::unique_ptr<Layer> make_concat();
std::unique_ptr<Layer> make_flatten();

// The largest number that a size in a layer's table may have: libraries count in 32 bits.
inline constexpr double max_layer_size = 2147483647;

// The most values that one layer adds or joins.
inline constexpr int max_joined = 64;

// The key that names a kind without an argument: its value is `true`.
Key& kind_flag(Schema& schema, const std::string& name, const std::string& doc);

// Throws Error (usage) unless `shape` has three axes, (C, H, W).
void require_image(const Shape& shape);

}  // namespace annulus
