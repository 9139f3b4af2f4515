// SPDX-License-Identifier: Apache-2.0
#include "io/transform.h"

#include <algorithm>

#include "core/error.h"

namespace annulus {
namespace {

// Channels are the first axis, also of plain features.
std::size_t channels_of(const Shape& sample) {
  return sample.rank() > 0 ? static_cast<std::size_t>(sample[0]) : 1;
}

std::vector<float> one_a_channel(std::span<const double> given, double none, const Shape& sample,
                                 const char* key) {
  const std::size_t channels = channels_of(sample);
  if (given.size() > 1 && given.size() != channels) {
    throw Error(ErrorKind::usage,
                fmt::format("`{}` has neither one number nor one a channel of inputs of {}", key,
                            to_string(sample)))
        .values(std::to_string(channels), std::to_string(given.size()));
  }
  std::vector<float> values(given.begin(), given.end());
  if (values.empty()) values.push_back(static_cast<float>(none));
  return values;
}

// Row `y` + `dy` of a plane, from column `dx` on; 0 outside.
void copy_window_row(std::span<const float> plane, std::int64_t height, std::int64_t width,
                     std::int64_t row, std::int64_t dx, std::span<float> to) {
  std::fill(to.begin(), to.end(), 0.0F);
  if (row < 0 || row >= height) return;
  const std::int64_t begin = std::max<std::int64_t>(0, -dx);
  const std::int64_t end = std::min(width, width - dx);
  if (begin >= end) return;
  const float* from = plane.data() + row * width + dx;
  std::copy(from + begin, from + end, to.data() + begin);
}

}  // namespace

Transform::Transform(const Shape& sample, double scale, std::span<const double> mean,
                     std::span<const double> std, const AugmentSpec& augment, std::uint64_t seed)
    : shape_(sample),
      scale_(static_cast<float>(scale)),
      mean_(one_a_channel(mean, 0, sample, "mean")),
      std_(one_a_channel(std, 1, sample, "std")),
      augment_(augment),
      crop_(seed, RandomUse::crop, ""),
      flip_(seed, RandomUse::flip, "") {
  require(scratch_size() == 0 || sample.rank() == 3, ErrorKind::usage,
          "`augment` varies images (C, H, W), not inputs of {}", to_string(sample));
}

std::size_t Transform::scratch_size() const {
  if (augment_.crop_padding == 0 && !augment_.flip) return 0;
  return static_cast<std::size_t>(shape_.elements());
}

void Transform::apply(std::span<float> values, std::int64_t sample, std::int64_t epoch,
                      std::span<float> scratch) const {
  if (scratch_size() > 0) vary(values, sample, epoch, scratch);
  normalize(values);
}

void Transform::normalize(std::span<float> values) const {
  const std::size_t parts = std::max(mean_.size(), std_.size());
  const std::size_t plane = values.size() / parts;
  for (std::size_t c = 0; c < parts; ++c) {
    const float mean = mean_[std::min(c, mean_.size() - 1)];
    const float std = std_[std::min(c, std_.size() - 1)];
    if (scale_ == 1 && mean == 0 && std == 1) continue;
    for (float& value : values.subspan(c * plane, plane)) value = (value * scale_ - mean) / std;
  }
}

void Transform::vary(std::span<float> values, std::int64_t sample, std::int64_t epoch,
                     std::span<float> scratch) const {
  const auto id = static_cast<std::uint64_t>(sample);
  const auto time = static_cast<std::uint64_t>(epoch);
  const auto offset = [&](std::uint64_t axis) {
    const auto choices = static_cast<std::uint64_t>(2 * augment_.crop_padding + 1);
    const std::uint64_t chosen = crop_.bits(axis, id, time) * choices >> 32;
    return static_cast<std::int64_t>(chosen) - augment_.crop_padding;
  };
  const std::int64_t dy = offset(0);
  const std::int64_t dx = offset(1);
  const bool mirrored = augment_.flip && (flip_.bits(0, id, time) >> 31) != 0;

  const std::int64_t height = shape_[1];
  const std::int64_t width = shape_[2];
  const auto plane = static_cast<std::size_t>(height * width);
  std::copy(values.begin(), values.end(), scratch.begin());
  for (std::size_t c = 0; c < static_cast<std::size_t>(shape_[0]); ++c) {
    for (std::int64_t y = 0; y < height; ++y) {
      const auto to = values.subspan(c * plane + static_cast<std::size_t>(y * width),
                                     static_cast<std::size_t>(width));
      copy_window_row(scratch.subspan(c * plane, plane), height, width, y + dy, dx, to);
      if (mirrored) std::reverse(to.begin(), to.end());
    }
  }
}

}  // namespace annulus
