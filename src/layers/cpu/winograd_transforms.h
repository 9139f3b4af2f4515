// SPDX-License-Identifier: Apache-2.0
// The transforms of winograd.cpp on 8 channels at a time, in the registers of AVX2.
#pragma once

#include <immintrin.h>

namespace annulus::cpu {

using Vector = __m256;
constexpr int lanes = 8;
constexpr int panel = 16;  // channels of the result that a product computes at a time
constexpr int edge = 6;    // of a transformed tile
constexpr int points = edge * edge;
constexpr int result_edge = 4;
constexpr int kernel = 3;

inline Vector load(const float* from) {
  return _mm256_loadu_ps(from);
}
inline void store(float* to, Vector value) {
  _mm256_storeu_ps(to, value);
}
inline Vector all(float value) {
  return _mm256_set1_ps(value);
}
inline Vector fma(Vector a, Vector b, Vector c) {
  return _mm256_fmadd_ps(a, b, c);
}

// One dimension of each transform: `x` and `y` are `stride` vectors apart.

// B^T: 6 to 6.
inline void transform_source(const Vector* x, int x_stride, Vector* y, int y_stride) {
  const Vector x0 = x[0];
  const Vector x1 = x[x_stride];
  const Vector x2 = x[2 * x_stride];
  const Vector x3 = x[3 * x_stride];
  const Vector x4 = x[4 * x_stride];
  const Vector x5 = x[5 * x_stride];
  const Vector even = fma(all(-4), x2, x4);
  const Vector odd = fma(all(-4), x1, x3);
  const Vector even2 = x4 - x2;
  const Vector odd2 = x3 - x1;
  y[0] = fma(all(4), x0, fma(all(-5), x2, x4));
  y[y_stride] = even + odd;
  y[2 * y_stride] = even - odd;
  y[3 * y_stride] = fma(all(2), odd2, even2);
  y[4 * y_stride] = fma(all(-2), odd2, even2);
  y[5 * y_stride] = fma(all(4), x1, fma(all(-5), x3, x5));
}

// A^T of F(4, 3): 6 to 4.
inline void transform_result(const Vector* x, int x_stride, Vector* y, int y_stride) {
  const Vector sum1 = x[x_stride] + x[2 * x_stride];
  const Vector difference1 = x[x_stride] - x[2 * x_stride];
  const Vector sum2 = x[3 * x_stride] + x[4 * x_stride];
  const Vector difference2 = x[3 * x_stride] - x[4 * x_stride];
  y[0] = x[0] + sum1 + sum2;
  y[y_stride] = fma(all(2), difference2, difference1);
  y[2 * y_stride] = fma(all(4), sum2, sum1);
  y[3 * y_stride] = fma(all(8), difference2, difference1) + x[5 * x_stride];
}

// G of F(4, 3): 3 to 6.
inline void transform_kernel(const Vector* x, int x_stride, Vector* y, int y_stride) {
  const Vector x0 = x[0];
  const Vector x1 = x[x_stride];
  const Vector x2 = x[2 * x_stride];
  const Vector even = x0 + x2;
  const Vector even2 = fma(all(4), x2, x0);
  const Vector odd2 = x1 + x1;
  y[0] = all(1.0F / 4) * x0;
  y[y_stride] = all(-1.0F / 6) * (even + x1);
  y[2 * y_stride] = all(-1.0F / 6) * (even - x1);
  y[3 * y_stride] = all(1.0F / 24) * (even2 + odd2);
  y[4 * y_stride] = all(1.0F / 24) * (even2 - odd2);
  y[5 * y_stride] = x2;
}

// G of F(3, 4): 4 to 6.
inline void transform_gradient(const Vector* x, int x_stride, Vector* y, int y_stride) {
  const Vector x0 = x[0];
  const Vector x1 = x[x_stride];
  const Vector x2 = x[2 * x_stride];
  const Vector x3 = x[3 * x_stride];
  const Vector even = x0 + x2;
  const Vector odd = x1 + x3;
  const Vector even2 = fma(all(4), x2, x0);
  const Vector odd2 = fma(all(8), x3, x1 + x1);
  y[0] = all(1.0F / 4) * x0;
  y[y_stride] = all(-1.0F / 6) * (even + odd);
  y[2 * y_stride] = all(-1.0F / 6) * (even - odd);
  y[3 * y_stride] = all(1.0F / 24) * (even2 + odd2);
  y[4 * y_stride] = all(1.0F / 24) * (even2 - odd2);
  y[5 * y_stride] = x3;
}

// A^T of F(3, 4): 6 to 3.
inline void transform_weight_gradient(const Vector* x, int x_stride, Vector* y, int y_stride) {
  const Vector sum1 = x[x_stride] + x[2 * x_stride];
  const Vector difference1 = x[x_stride] - x[2 * x_stride];
  const Vector sum2 = x[3 * x_stride] + x[4 * x_stride];
  const Vector difference2 = x[3 * x_stride] - x[4 * x_stride];
  y[0] = x[0] + sum1 + sum2;
  y[y_stride] = fma(all(2), difference2, difference1);
  y[2 * y_stride] = fma(all(4), sum2, sum1) + x[5 * x_stride];
}

// A transform of both dimensions, of From x From vectors to To x To.
template <int From, int To, class Transform>
void both_ways(const Vector* x, Vector* y, const Transform& transform) {
  Vector half[To * From];
  for (int j = 0; j < From; ++j) transform(x + j, From, half + j, From);
  for (int i = 0; i < To; ++i) transform(half + i * From, 1, y + i * To, 1);
}

// Rows of 8 numbers become columns.
inline void transpose(Vector* v) {
  Vector a[lanes];
  for (int i = 0; i < 4; ++i) {
    a[2 * i] = _mm256_unpacklo_ps(v[2 * i], v[2 * i + 1]);
    a[2 * i + 1] = _mm256_unpackhi_ps(v[2 * i], v[2 * i + 1]);
  }
  Vector b[lanes];
  for (int i = 0; i < 2; ++i) {
    const int k = 4 * i;
    b[k] = _mm256_shuffle_ps(a[k], a[k + 2], 0x44);
    b[k + 1] = _mm256_shuffle_ps(a[k], a[k + 2], 0xEE);
    b[k + 2] = _mm256_shuffle_ps(a[k + 1], a[k + 3], 0x44);
    b[k + 3] = _mm256_shuffle_ps(a[k + 1], a[k + 3], 0xEE);
  }
  for (int i = 0; i < 4; ++i) {
    v[i] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
    v[i + 4] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
  }
}

}  // namespace annulus::cpu
