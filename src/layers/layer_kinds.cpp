// SPDX-License-Identifier: Apache-2.0
#include "layers/layer_kinds.h"

#include <array>

namespace annulus {

std::span<const LayerKind> layer_kinds() {
  static const std::array<LayerKind, 12> kinds = {{
      {"conv", "2-D convolution of a (C, H, W) image", make_conv2d},
      {"linear", "fully connected layer; an image counts as a vector", make_linear},
      {"batch_norm", "batch normalisation, with a sum and ReLU in the same pass", make_batch_norm},
      {"max_pool", "maximum over windows", make_max_pool},
      {"avg_pool", "average over windows", make_avg_pool},
      {"global_avg_pool", "average of each channel, to (C, 1, 1)", make_global_avg_pool},
      {"relu", "max(x, 0)", make_relu},
      {"dropout", "sets elements to zero at random while training", make_dropout},
      {"softmax", "softmax over the channels", make_softmax},
      {"add", "sum of two or more layers", make_add},
      {"concat", "joins layers along the channels", make_concat},
      {"flatten", "(C, H, W) to a vector", make_flatten},
  }};
  return kinds;
}

void Layer::check(const Location&, Problems&) const {}

Key& kind_flag(Schema& schema, const std::string& name, const std::string& doc) {
  return schema
      .key(
          name, "true",
          [name](const Value& value, Problems& problems) {
            const bool* flag = value.get<bool>();
            if (flag == nullptr || !*flag) {
              problems.add(value.where,
                           fmt::format("'{}' must be true, not {}", name, to_string(value)));
            }
          },
          doc)
      .required();
}

void require_image(const Shape& shape) {
  require(shape.rank() == 3, ErrorKind::usage, "takes an image (C, H, W), not a shape of {}",
          to_string(shape));
}

}  // namespace annulus
