// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "core/schema.h"
#include "core/shape.h"
#include "layers/ops.h"

namespace annulus {

// How a window (of a convolution or of pooling) moves over an image, as written in a layer's table.
struct WindowSpec {
  Extent2d kernel;
  Extent2d stride;
  Extent2d dilation;  // 1: dense
  Extent2d padding = {0, 0};
  bool same = false;       // padding = "same": output = ceil(input / stride), extra at the end
  bool ceil_mode = false;  // round the output up; windows that would start in the padding are cut
};

// A key whose value is an integer, for both axes, or [h, w]; each at least `minimum`.
Key& extent_key(Schema& schema, const std::string& name, Extent2d* extent, std::int64_t minimum,
                const std::string& doc);
// A key whose value is an integer, [h, w] or "same".
Key& padding_key(Schema& schema, WindowSpec* window);

// "3" where both are equal, else "3x5".
std::string to_string(const Extent2d& extent);

// Where the windows lie on an image.
struct WindowFit {
  Padding2d padding;
  Extent2d output;
};

// Error (usage) where the window does not fit: "kernel 3 > padded input 1".
WindowFit fit_window(const WindowSpec& window, const Shape& image);

}  // namespace annulus
