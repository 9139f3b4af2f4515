// SPDX-License-Identifier: Apache-2.0
// Convolutions 3x3 of stride 1 and padding 1 by Winograd's minimal filtering F(4x4, 3x3) and, for
// the gradient of weights, F(3x3, 4x4): a quarter of the products, another rounding. From Lavin and
// Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016 (arXiv:1509.09308), with the
// points 0, 1, -1, 2, -2 and infinity. For processors with AVX2, where oneDNN has none of its own.
#pragma once

#include <cstddef>
#include <cstdint>

namespace annulus::cpu {

// Values in blocks of 8 or 16 channels (Format::blocked8, blocked16), without padded channels.
struct WinogradShape {
  std::int64_t images = 0;
  std::int64_t in = 0;   // channels, a multiple of 16
  std::int64_t out = 0;  // a multiple of 16
  std::int64_t height = 0;
  std::int64_t width = 0;
  int in_block = 8;  // channels side by side in memory
  int out_block = 8;

  // Tiles of 4x4 results; those at the edge may be partly empty.
  std::int64_t tiles() const { return images * ((height + 3) / 4) * ((width + 3) / 4); }
  // The convolution that gives the input's gradient from that of the output.
  WinogradShape transposed() const { return {images, out, in, height, width, out_block, in_block}; }
};

// Whether this build has them: it needs AVX2 and FMA (ANNULUS_MARCH).
bool winograd_offered();

// What happens to a result before it is stored: y = relu?(x + bias (+ addend)).
struct WinogradTail {
  const float* bias = nullptr;    // (out), or none
  const float* addend = nullptr;  // of the result's layout, may be the result itself; or none
  bool relu = false;
};

// Weights are given as (3, 3, in, out), `out` side by side. Transformed, they are
// (36, out / 16, in, 16). In parallel.
std::size_t winograd_weight_bytes(const WinogradShape& shape);
void winograd_transform_weight(const WinogradShape& shape, const float* weight, float* transformed);
// The same for shape.transposed(), from the weights of `shape`.
void winograd_transform_flipped(const WinogradShape& shape, const float* weight,
                                float* transformed);

// Results do not depend on the number of threads: each is computed by one, in one order. In
// parallel, with `workspace` of as many bytes as winograd_workspace() says for that number.
std::size_t winograd_workspace(const WinogradShape& shape, int threads);
void winograd_convolve(const WinogradShape& shape, const float* source, const float* transformed,
                       const WinogradTail& tail, float* result, std::byte* workspace);

// The gradient of the weights, (3, 3, in, out).
std::size_t winograd_gradient_workspace(const WinogradShape& shape);
void winograd_weight_gradient(const WinogradShape& shape, const float* source,
                              const float* result_gradient, float* gradient, std::byte* workspace);

}  // namespace annulus::cpu
