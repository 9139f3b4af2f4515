// SPDX-License-Identifier: Apache-2.0
#include "layers/window.h"

#include <algorithm>
#include <optional>

namespace annulus {
namespace {

// Far above any real window, and small enough that products of two stay exact.
constexpr std::int64_t max_extent = 1 << 20;

std::optional<Extent2d> read_extent(const Value& value, std::int64_t minimum) {
  const auto read = [&](const Value& item, std::int64_t& out) {
    const auto* number = item.get<std::int64_t>();
    if (number == nullptr || *number < minimum || *number > max_extent) return false;
    out = *number;
    return true;
  };
  Extent2d extent;
  if (read(value, extent.h)) return Extent2d{extent.h, extent.h};
  const auto* list = value.get<Value::Array>();
  if (list == nullptr || list->size() != 2) return std::nullopt;
  if (!read((*list)[0], extent.h) || !read((*list)[1], extent.w)) return std::nullopt;
  return extent;
}

std::string form_of(std::int64_t minimum, const char* more) {
  return fmt::format("integer from {} to {}{}", minimum, max_extent, more);
}

// What one axis of a window needs of the image.
struct Axis {
  std::int64_t input;
  std::int64_t kernel;
  std::int64_t stride;
  std::int64_t dilation;
  std::int64_t padding;
  std::int64_t span() const { return dilation * (kernel - 1) + 1; }
  std::int64_t padded() const { return input + 2 * padding; }
};

std::int64_t output_of(const Axis& axis, const WindowSpec& window) {
  if (window.same) return (axis.input + axis.stride - 1) / axis.stride;
  const std::int64_t room = axis.padded() - axis.span();
  std::int64_t output = room / axis.stride + 1;
  if (window.ceil_mode) {
    output = (room + axis.stride - 1) / axis.stride + 1;
    if ((output - 1) * axis.stride >= axis.input + axis.padding) --output;
  }
  return output;
}

// Rows or columns before and after the image.
std::pair<std::int64_t, std::int64_t> padding_of(const Axis& axis, std::int64_t output, bool same) {
  if (!same) return {axis.padding, axis.padding};
  const std::int64_t total =
      std::max<std::int64_t>((output - 1) * axis.stride + axis.span() - axis.input, 0);
  return {total / 2, total - total / 2};
}

}  // namespace

Key& extent_key(Schema& schema, const std::string& name, Extent2d* extent, std::int64_t minimum,
                const std::string& doc) {
  const std::string form = form_of(minimum, " or [h, w]");
  return schema.key(
      name, form,
      [=](const Value& value, Problems& problems) {
        const auto read = read_extent(value, minimum);
        if (read) {
          *extent = *read;
        } else {
          problems.add(value.where,
                       fmt::format("'{}' must be {}, not {}", name, form, to_string(value)));
        }
      },
      doc);
}

Key& padding_key(Schema& schema, WindowSpec* window) {
  const std::string form = form_of(0, ", [h, w] or \"same\"");
  return schema.key(
      "padding", form,
      [=](const Value& value, Problems& problems) {
        const auto* word = value.get<std::string>();
        const auto read = read_extent(value, 0);
        if (word != nullptr && *word == "same") {
          window->same = true;
        } else if (read) {
          window->padding = *read;
        } else {
          problems.add(value.where,
                       fmt::format("'padding' must be {}, not {}", form, to_string(value)));
        }
      },
      "rows and columns added around the image; \"same\": output = ceil(input / stride), extra at "
      "the end");
}

std::string to_string(const Extent2d& extent) {
  return extent.h == extent.w ? std::to_string(extent.h) : fmt::format("{}x{}", extent.h, extent.w);
}

WindowFit fit_window(const WindowSpec& window, const Shape& image) {
  const Axis h{image[1], window.kernel.h, window.stride.h, window.dilation.h, window.padding.h};
  const Axis w{image[2], window.kernel.w, window.stride.w, window.dilation.w, window.padding.w};
  if (!window.same && (h.span() > h.padded() || w.span() > w.padded())) {
    const bool dense = h.span() == h.kernel && w.span() == w.kernel;
    fail(ErrorKind::usage, "kernel {}{} > padded input {}", to_string(Extent2d{h.span(), w.span()}),
         dense ? "" : " (with dilation " + to_string(window.dilation) + ")",
         to_string(Extent2d{h.padded(), w.padded()}));
  }
  WindowFit fit;
  fit.output = {output_of(h, window), output_of(w, window)};
  std::tie(fit.padding.top, fit.padding.bottom) = padding_of(h, fit.output.h, window.same);
  std::tie(fit.padding.left, fit.padding.right) = padding_of(w, fit.output.w, window.same);
  return fit;
}

}  // namespace annulus
