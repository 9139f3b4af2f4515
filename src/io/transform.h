// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/rng.h"
#include "core/shape.h"
#include "io/data_spec.h"

namespace annulus {

// Makes network inputs of stored values, in place: a random window of the image with black (0)
// around it, a random mirror image, then (value * scale - mean[c]) / std[c]. Black is a stored 0,
// so it is normalised like any other pixel. Pure functions of (seed, sample, epoch).
class Transform {
 public:
  // Error (usage): mean or std with neither one number nor one a channel; augmentation of what is
  // no image (C, H, W).
  Transform(const Shape& sample, double scale, std::span<const double> mean,
            std::span<const double> std, const AugmentSpec& augment, std::uint64_t seed);

  // Floats of working memory that apply() needs.
  std::size_t scratch_size() const;
  // `values` is one sample, of the shape given before.
  void apply(std::span<float> values, std::int64_t sample, std::int64_t epoch,
             std::span<float> scratch) const;

 private:
  void normalize(std::span<float> values) const;
  void vary(std::span<float> values, std::int64_t sample, std::int64_t epoch,
            std::span<float> scratch) const;

  Shape shape_;
  float scale_;
  std::vector<float> mean_;  // one for all channels, or one each
  std::vector<float> std_;
  AugmentSpec augment_;
  RandomStream crop_;
  RandomStream flip_;
};

}  // namespace annulus
