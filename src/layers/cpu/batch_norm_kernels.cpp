// SPDX-License-Identifier: Apache-2.0
#include "layers/cpu/batch_norm_kernels.h"

#include <algorithm>
#include <type_traits>

namespace annulus::cpu {
namespace {

constexpr std::int64_t stretch = 64;  // rows summed in single precision

using LaneSums = std::array<float, ChannelView::max_lanes>;

void merge_lane(double count_a, double& mean_a, double& squares_a, double count_b, double mean_b,
                double squares_b) {
  const double count = count_a + count_b;
  const double delta = mean_b - mean_a;
  mean_a += delta * (count_b / count);
  squares_a += squares_b + delta * delta * (count_a * (count_b / count));
}

// Sums of deviations from the stretch's first row: a value near the mean, so that the squares keep
// their digits.
template <int L>
Moments stretch_moments(const float* x, std::int64_t count, std::int64_t stride, int lanes) {
  const int n = L == 0 ? lanes : L;
  LaneSums sum{};
  LaneSums squares{};
  for (std::int64_t r = 1; r < count; ++r) {
    for (int l = 0; l < n; ++l) {
      const float d = x[r * stride + l] - x[l];
      sum[l] += d;
      squares[l] += d * d;
    }
  }
  Moments result;
  result.count = static_cast<double>(count);
  for (int l = 0; l < n; ++l) {
    const double shift = sum[l] / result.count;
    result.mean[l] = x[l] + shift;
    result.squares[l] = squares[l] - shift * sum[l];
  }
  return result;
}

template <int L>
Moments rows_moments(const float* x, const Rows& rows) {
  Moments total;
  for (std::int64_t r = 0; r < rows.count; r += stretch) {
    const std::int64_t count = std::min(stretch, rows.count - r);
    total.merge(stretch_moments<L>(x + r * rows.stride, count, rows.stride, rows.lanes));
  }
  return total;
}

// Results of a row are kept apart until it is done: the compiler cannot know that only equal
// elements of the memories may be the same, and would test or give up. For the same reason norms
// are passed by value.
template <int L, bool add, bool relu>
void normalize_rows(const float* x, const float* z, float* y, const Rows& rows,
                    const LaneNorm norm) {
  const int n = L == 0 ? rows.lanes : L;
  for (std::int64_t r = 0; r < rows.count; ++r) {
    const std::int64_t i = r * rows.stride;
    LaneValues row;
    for (int l = 0; l < n; ++l) {
      float v = (x[i + l] - norm.mean[l]) * norm.factor[l] + norm.shift[l];
      if constexpr (add) v += z[i + l];
      if constexpr (relu) v = v < 0 ? 0 : v;
      row[l] = v;
    }
    for (int l = 0; l < n; ++l) y[i + l] = row[l];
  }
}

// The masked output gradient of element i in lane l.
template <Mask mask>
float masked_gradient(const GradientPlane& p, std::int64_t i, float x, const LaneNorm& norm,
                      int l) {
  const float g = p.output_gradient[i];
  if constexpr (mask == Mask::none) {
    return g;
  } else if constexpr (mask == Mask::output) {
    // This mask is used only where there is an output, which the analyser cannot see.
    return p.output[i] > 0 ? g : 0.0F;  // NOLINT(clang-analyzer-core.NullDereference)
  } else {
    return (x - norm.mean[l]) * norm.factor[l] + norm.shift[l] > 0 ? g : 0.0F;
  }
}

template <int L, Mask mask, bool store>
void sum_gradient_rows(const GradientPlane& p, float* masked, const Rows& rows, const LaneNorm norm,
                       GradientSums& total) {
  const int n = L == 0 ? rows.lanes : L;
  for (std::int64_t first = 0; first < rows.count; first += stretch) {
    const std::int64_t last = std::min(first + stretch, rows.count);
    LaneSums gradient{};
    LaneSums product{};
    for (std::int64_t r = first; r < last; ++r) {
      const std::int64_t i = r * rows.stride;
      LaneValues row;
      for (int l = 0; l < n; ++l) {
        const float x = p.input[i + l];
        const float g = masked_gradient<mask>(p, i + l, x, norm, l);
        row[l] = g;
        gradient[l] += g;
        product[l] += g * (x - norm.mean[l]);
      }
      if constexpr (store) {
        for (int l = 0; l < n; ++l) masked[i + l] = row[l];
      }
    }
    for (int l = 0; l < n; ++l) {
      total.gradient[l] += gradient[l];
      total.product[l] += product[l];
    }
  }
}

template <int L, Mask mask>
void input_gradient_rows(const GradientPlane& p, float* dx, const Rows& rows, const LaneNorm norm,
                         const LaneValues mean_gradient, const LaneValues slope) {
  const int n = L == 0 ? rows.lanes : L;
  for (std::int64_t r = 0; r < rows.count; ++r) {
    const std::int64_t i = r * rows.stride;
    LaneValues row;
    for (int l = 0; l < n; ++l) {
      const float x = p.input[i + l];
      const float g = masked_gradient<mask>(p, i + l, x, norm, l);
      row[l] = norm.factor[l] * (g - mean_gradient[l] - (x - norm.mean[l]) * slope[l]);
    }
    for (int l = 0; l < n; ++l) dx[i + l] = row[l];
  }
}

template <class F>
void with_mask(Mask mask, F&& f) {
  switch (mask) {
    case Mask::none:
      return f(std::integral_constant<Mask, Mask::none>{});
    case Mask::input:
      return f(std::integral_constant<Mask, Mask::input>{});
    case Mask::output:
      return f(std::integral_constant<Mask, Mask::output>{});
  }
}

template <class F>
void with_flag(bool flag, F&& f) {
  if (flag) {
    f(std::true_type{});
  } else {
    f(std::false_type{});
  }
}

GradientPlane at(const GradientPlane& plane, std::int64_t offset) {
  return {plane.input + offset, plane.output == nullptr ? nullptr : plane.output + offset,
          plane.output_gradient + offset};
}

}  // namespace

void Moments::merge(const Moments& other) {
  if (count == 0) {
    *this = other;
    return;
  }
  for (int l = 0; l < ChannelView::max_lanes; ++l) {
    merge_lane(count, mean[l], squares[l], other.count, other.mean[l], other.squares[l]);
  }
  count += other.count;
}

Moments plane_moments(const float* input, const PlaneRows& rows) {
  Moments total;
  for (const Rows& piece : rows) {
    Moments lanes;
    with_lanes(piece.lanes,
               [&](auto l) { lanes = rows_moments<l()>(input + piece.offset, piece); });
    if (!rows.one_channel) return lanes;
    for (int l = 0; l < piece.lanes; ++l) {
      merge_lane(total.count, total.mean[0], total.squares[0], lanes.count, lanes.mean[l],
                 lanes.squares[l]);
      total.count += lanes.count;
    }
  }
  return total;
}

void normalize_plane(const float* input, const float* add, float* output, const PlaneRows& rows,
                     const LaneNorm& norm, bool relu) {
  for (const Rows& piece : rows) {
    const float* z = add == nullptr ? nullptr : add + piece.offset;
    with_lanes(piece.lanes, [&](auto l) {
      with_flag(add != nullptr, [&](auto adds) {
        with_flag(relu, [&](auto clips) {
          normalize_rows<l(), adds(), clips()>(input + piece.offset, z, output + piece.offset,
                                               piece, norm);
        });
      });
    });
  }
}

GradientSums gradient_sums(const GradientPlane& plane, float* masked, const PlaneRows& rows,
                           const LaneNorm& norm, Mask mask) {
  GradientSums total;
  for (const Rows& piece : rows) {
    GradientSums lanes;
    float* store = masked == nullptr ? nullptr : masked + piece.offset;
    with_lanes(piece.lanes, [&](auto l) {
      with_mask(mask, [&](auto m) {
        with_flag(store != nullptr, [&](auto stores) {
          sum_gradient_rows<l(), m(), stores()>(at(plane, piece.offset), store, piece, norm, lanes);
        });
      });
    });
    if (!rows.one_channel) return lanes;
    for (int l = 0; l < piece.lanes; ++l) {
      total.gradient[0] += lanes.gradient[l];
      total.product[0] += lanes.product[l];
    }
  }
  return total;
}

void input_gradient_plane(const GradientPlane& plane, float* input_gradient, const PlaneRows& rows,
                          const LaneNorm& norm, const LaneValues& mean_gradient,
                          const LaneValues& slope, Mask mask) {
  for (const Rows& piece : rows) {
    with_lanes(piece.lanes, [&](auto l) {
      with_mask(mask, [&](auto m) {
        input_gradient_rows<l(), m()>(at(plane, piece.offset), input_gradient + piece.offset, piece,
                                      norm, mean_gradient, slope);
      });
    });
  }
}

}  // namespace annulus::cpu
