// SPDX-License-Identifier: Apache-2.0
// The inner loops of batch norm over one image's group of channels. Sums are taken in single
// precision over a stretch of rows and in double precision across stretches, in an order that
// depends on the shape alone.
#pragma once

#include <array>

#include "layers/cpu/plane.h"

namespace annulus::cpu {

using LaneDoubles = std::array<double, ChannelView::max_lanes>;

// Mean and sum of squared deviations of `count` values in each lane; of a plain channel in lane 0.
struct Moments {
  double count = 0;
  LaneDoubles mean{};
  LaneDoubles squares{};

  // Joins two sets of values (Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm
  // for computing sample variances", 1979).
  void merge(const Moments& other);
};

Moments plane_moments(const float* input, const PlaneRows& rows);

// y = (x - mean) factor + shift in each lane.
struct LaneNorm {
  LaneValues mean{};
  LaneValues factor{};
  LaneValues shift{};
};

// `add` may be null. `output` may be `input` or `add`. `streams`: the output is too large to be
// found in the cache again, and goes past it where it can.
void normalize_plane(const float* input, const float* add, float* output, const PlaneRows& rows,
                     const LaneNorm& norm, bool relu, bool streams);

// What tells where the ReLU let values pass: nothing to tell, the input and the norm, or the
// output.
enum class Mask { none, input, output };

struct GradientPlane {
  const float* input = nullptr;
  const float* output = nullptr;  // read with Mask::output
  const float* output_gradient = nullptr;
};

struct GradientSums {
  LaneDoubles gradient{};
  LaneDoubles product{};  // gradient times (input - mean)
};

// Sums of the masked output gradient, which `masked` gets where it is not null.
GradientSums gradient_sums(const GradientPlane& plane, float* masked, const PlaneRows& rows,
                           const LaneNorm& norm, Mask mask);

// dx = factor (g - mean_gradient - (x - mean) slope) with the masked output gradient g.
// `input_gradient` may be the output gradient's memory.
void input_gradient_plane(const GradientPlane& plane, float* input_gradient, const PlaneRows& rows,
                          const LaneNorm& norm, const LaneValues& mean_gradient,
                          const LaneValues& slope, Mask mask);

}  // namespace annulus::cpu
