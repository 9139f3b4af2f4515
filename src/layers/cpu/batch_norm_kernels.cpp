// SPDX-License-Identifier: Apache-2.0
#include "layers/cpu/batch_norm_kernels.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "layers/cpu/lanes.h"

namespace annulus::cpu {
namespace {

constexpr std::int64_t stretch = 64;  // rows summed in single precision

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
  const auto first = Lanes<L>::load(x, lanes);
  Lanes<L> sum;
  Lanes<L> squares;
  for (std::int64_t r = 1; r < count; ++r) {
    const auto d = Lanes<L>::load(x + r * stride, lanes) - first;
    sum += d;
    squares += d * d;
  }
  Moments result;
  result.count = static_cast<double>(count);
  for (int l = 0; l < (L == 0 ? lanes : L); ++l) {
    const double shift = sum[l] / result.count;
    result.mean[l] = first[l] + shift;
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

// Whether rows of `to` can be streamed: whole registers at whole multiples of them.
template <int L>
bool can_stream(const float* to, const Rows& rows) {
  constexpr std::uintptr_t bytes = 32;
  return (L == 8 || L == 16) && reinterpret_cast<std::uintptr_t>(to) % bytes == 0 &&
         rows.stride % (bytes / sizeof(float)) == 0;
}

template <bool streams, int L>
void put(const Lanes<L>& values, float* to, int lanes) {
  if constexpr (streams && (L == 8 || L == 16)) {
    values.stream(to);
  } else {
    values.store(to, lanes);
  }
}

template <int L, bool add, bool relu, bool streams>
void normalize_rows(const float* x, const float* z, float* y, const Rows& rows,
                    const LaneNorm& norm) {
  const auto mean = Lanes<L>::of(norm.mean);
  const auto factor = Lanes<L>::of(norm.factor);
  const auto shift = Lanes<L>::of(norm.shift);
  for (std::int64_t r = 0; r < rows.count; ++r) {
    const std::int64_t i = r * rows.stride;
    auto v = (Lanes<L>::load(x + i, rows.lanes) - mean) * factor + shift;
    if constexpr (add) v += Lanes<L>::load(z + i, rows.lanes);
    if constexpr (relu) v = v.clipped();
    put<streams>(v, y + i, rows.lanes);
  }
}

// The masked output gradient of a row that begins at element i; `centered` is its input less the
// mean.
template <int L, Mask mask>
Lanes<L> masked_gradient(const GradientPlane& p, std::int64_t i, int lanes,
                         const Lanes<L>& centered, const Lanes<L>& factor, const Lanes<L>& shift) {
  const auto g = Lanes<L>::load(p.output_gradient + i, lanes);
  if constexpr (mask == Mask::none) {
    return g;
  } else if constexpr (mask == Mask::output) {
    return g.where_positive(Lanes<L>::load(p.output + i, lanes));
  } else {
    return g.where_positive(centered * factor + shift);
  }
}

template <int L, Mask mask, bool store>
void sum_gradient_rows(const GradientPlane& p, float* masked, const Rows& rows,
                       const LaneNorm& norm, GradientSums& total) {
  const auto mean = Lanes<L>::of(norm.mean);
  const auto factor = Lanes<L>::of(norm.factor);
  const auto shift = Lanes<L>::of(norm.shift);
  for (std::int64_t first = 0; first < rows.count; first += stretch) {
    const std::int64_t last = std::min(first + stretch, rows.count);
    Lanes<L> gradient;
    Lanes<L> product;
    for (std::int64_t r = first; r < last; ++r) {
      const std::int64_t i = r * rows.stride;
      const auto centered = Lanes<L>::load(p.input + i, rows.lanes) - mean;
      const auto g = masked_gradient<L, mask>(p, i, rows.lanes, centered, factor, shift);
      gradient += g;
      product += g * centered;
      if constexpr (store) g.store(masked + i, rows.lanes);
    }
    for (int l = 0; l < (L == 0 ? rows.lanes : L); ++l) {
      total.gradient[l] += gradient[l];
      total.product[l] += product[l];
    }
  }
}

template <int L, Mask mask>
void input_gradient_rows(const GradientPlane& p, float* dx, const Rows& rows, const LaneNorm& norm,
                         const LaneValues& mean_gradients, const LaneValues& slopes) {
  const auto mean = Lanes<L>::of(norm.mean);
  const auto factor = Lanes<L>::of(norm.factor);
  const auto shift = Lanes<L>::of(norm.shift);
  const auto mean_gradient = Lanes<L>::of(mean_gradients);
  const auto slope = Lanes<L>::of(slopes);
  for (std::int64_t r = 0; r < rows.count; ++r) {
    const std::int64_t i = r * rows.stride;
    const auto centered = Lanes<L>::load(p.input + i, rows.lanes) - mean;
    const auto g = masked_gradient<L, mask>(p, i, rows.lanes, centered, factor, shift);
    const auto gradient = factor * (g - mean_gradient - centered * slope);
    gradient.store(dx + i, rows.lanes);
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
                     const LaneNorm& norm, bool relu, bool streams) {
  for (const Rows& piece : rows) {
    const float* z = add == nullptr ? nullptr : add + piece.offset;
    float* const y = output + piece.offset;
    with_lanes(piece.lanes, [&](auto l) {
      with_flag(add != nullptr, [&](auto adds) {
        with_flag(relu, [&](auto clips) {
          with_flag(streams && can_stream<l()>(y, piece), [&](auto past) {
            normalize_rows<l(), adds(), clips(), past()>(input + piece.offset, z, y, piece, norm);
          });
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
