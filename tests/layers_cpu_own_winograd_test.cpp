// SPDX-License-Identifier: Apache-2.0
// annulus's own convolutions by Winograd's algorithm against sums in double precision.
#include <algorithm>
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "core/cpu/parallel.h"
#include "layers/cpu/winograd.h"
#include "support/op_harness.h"

using annulus::cpu::WinogradShape;
using annulus::cpu::WinogradTail;
using annulus::testing::random_values;
using annulus::testing::Values;

namespace {

// Element (image, channel, y, x) of a value in blocks of channels; 0 outside of the image.
struct Blocked {
  const WinogradShape& shape;
  std::int64_t channels;
  int block;

  std::int64_t at(std::int64_t n, std::int64_t c, std::int64_t y, std::int64_t x) const {
    const std::int64_t plane = n * channels / block + c / block;
    return ((plane * shape.height + y) * shape.width + x) * block + c % block;
  }
  double get(const Values& values, std::int64_t n, std::int64_t c, std::int64_t y,
             std::int64_t x) const {
    const bool inside = y >= 0 && y < shape.height && x >= 0 && x < shape.width;
    return inside ? values[static_cast<std::size_t>(at(n, c, y, x))] : 0;
  }
  std::size_t size() const {
    return static_cast<std::size_t>(shape.images * channels * shape.height * shape.width);
  }
  template <class F>
  void for_each(const F& f) const {
    for (std::int64_t n = 0; n < shape.images; ++n)
      for (std::int64_t c = 0; c < channels; ++c)
        for (std::int64_t y = 0; y < shape.height; ++y)
          for (std::int64_t x = 0; x < shape.width; ++x) f(n, c, y, x);
  }
};

// A convolution with all its data, weights (3, 3, in, out).
struct Layer {
  explicit Layer(const WinogradShape& s) : shape(s) {
    source = random_values(static_cast<std::int64_t>(from.size()), 1);
    result_gradient = random_values(static_cast<std::int64_t>(to.size()), 2);
    weight = random_values(9 * shape.in * shape.out, 3);
    bias = random_values(shape.out, 4);
    addend = random_values(static_cast<std::int64_t>(to.size()), 5);
  }

  double weight_at(std::int64_t dy, std::int64_t dx, std::int64_t in, std::int64_t out) const {
    return weight[static_cast<std::size_t>(((dy * 3 + dx) * shape.in + in) * shape.out + out)];
  }

  WinogradShape shape;
  Blocked from{shape, shape.in, shape.in_block};
  Blocked to{shape, shape.out, shape.out_block};
  Values source, result_gradient, weight, bias, addend;
};

Values exact_result(const Layer& l) {
  Values result(l.to.size());
  l.to.for_each([&](std::int64_t n, std::int64_t o, std::int64_t y, std::int64_t x) {
    double sum = 0;
    for (std::int64_t i = 0; i < l.shape.in; ++i)
      for (std::int64_t dy = 0; dy < 3; ++dy)
        for (std::int64_t dx = 0; dx < 3; ++dx)
          sum += l.weight_at(dy, dx, i, o) * l.from.get(l.source, n, i, y + dy - 1, x + dx - 1);
    result[static_cast<std::size_t>(l.to.at(n, o, y, x))] = static_cast<float>(sum);
  });
  return result;
}

Values exact_source_gradient(const Layer& l) {
  Values result(l.from.size());
  l.from.for_each([&](std::int64_t n, std::int64_t i, std::int64_t y, std::int64_t x) {
    double sum = 0;
    for (std::int64_t o = 0; o < l.shape.out; ++o)
      for (std::int64_t dy = 0; dy < 3; ++dy)
        for (std::int64_t dx = 0; dx < 3; ++dx)
          sum +=
              l.weight_at(dy, dx, i, o) * l.to.get(l.result_gradient, n, o, y - dy + 1, x - dx + 1);
    result[static_cast<std::size_t>(l.from.at(n, i, y, x))] = static_cast<float>(sum);
  });
  return result;
}

Values exact_weight_gradient(const Layer& l) {
  Values result;
  for (std::int64_t dy = 0; dy < 3; ++dy)
    for (std::int64_t dx = 0; dx < 3; ++dx)
      for (std::int64_t i = 0; i < l.shape.in; ++i)
        for (std::int64_t o = 0; o < l.shape.out; ++o) {
          double sum = 0;
          for (std::int64_t n = 0; n < l.shape.images; ++n)
            for (std::int64_t y = 0; y < l.shape.height; ++y)
              for (std::int64_t x = 0; x < l.shape.width; ++x)
                sum += l.to.get(l.result_gradient, n, o, y, x) *
                       l.from.get(l.source, n, i, y + dy - 1, x + dx - 1);
          result.push_back(static_cast<float>(sum));
        }
  return result;
}

struct Found {
  Values result, source_gradient, weight_gradient;
};

std::vector<std::byte> memory(std::size_t bytes) {
  return std::vector<std::byte>(bytes, std::byte{0xff});  // NaN, wherever it were read first
}

Found compute(const Layer& l, int threads, const WinogradTail& tail = {}) {
  annulus::set_parallel_threads(threads);
  Found found{Values(l.to.size()), Values(l.from.size()),
              Values(static_cast<std::size_t>(9 * l.shape.in * l.shape.out))};
  const WinogradShape transposed = l.shape.transposed();
  Values transformed(winograd_weight_bytes(l.shape) / sizeof(float));
  auto workspace = memory(
      std::max({winograd_workspace(l.shape, threads), winograd_workspace(transposed, threads),
                winograd_gradient_workspace(l.shape)}));
  winograd_transform_weight(l.shape, l.weight.data(), transformed.data());
  winograd_convolve(l.shape, l.source.data(), transformed.data(), tail, found.result.data(),
                    workspace.data());
  winograd_transform_flipped(l.shape, l.weight.data(), transformed.data());
  winograd_convolve(transposed, l.result_gradient.data(), transformed.data(), {},
                    found.source_gradient.data(), workspace.data());
  winograd_weight_gradient(l.shape, l.source.data(), l.result_gradient.data(),
                           found.weight_gradient.data(), workspace.data());
  annulus::set_parallel_threads(1);
  return found;
}

// The largest error, relative to the largest value.
double error_of(const Values& found, const Values& exact) {
  double error = 0;
  double largest = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    error = std::max(error, std::abs(static_cast<double>(found[i]) - exact[i]));
    largest = std::max(largest, std::abs(static_cast<double>(exact[i])));
  }
  return found.size() == exact.size() ? error / largest : NAN;
}

// Whole, cut and single tiles; images that are not square; channels that differ; both block sizes.
const WinogradShape shapes[] = {
    {2, 16, 16, 8, 8, 8, 8},   {1, 32, 16, 7, 7, 8, 8},   {3, 16, 48, 5, 9, 16, 16},
    {2, 48, 80, 13, 6, 8, 16}, {1, 16, 32, 1, 1, 16, 8},  {5, 32, 32, 2, 3, 16, 16},
    {1, 160, 16, 11, 4, 8, 8}, {1, 16, 144, 4, 19, 8, 8},
};

bool same_bits(const Found& a, const Found& b) {
  return a.result == b.result && a.source_gradient == b.source_gradient &&
         a.weight_gradient == b.weight_gradient;
}

}  // namespace

TEST_CASE("own Winograd: results and both gradients of every shape") {
  if (!annulus::cpu::winograd_offered()) return;  // a build without AVX2 has none
  for (const WinogradShape& shape : shapes) {
    CAPTURE(shape.in);
    CAPTURE(shape.out);
    CAPTURE(shape.height);
    CAPTURE(shape.width);
    const Layer layer(shape);
    const Found found = compute(layer, 1);
    CHECK(error_of(found.result, exact_result(layer)) < 1e-5);
    CHECK(error_of(found.source_gradient, exact_source_gradient(layer)) < 1e-5);
    CHECK(error_of(found.weight_gradient, exact_weight_gradient(layer)) < 1e-5);
  }
}

TEST_CASE("own Winograd: the same bits for any number of threads") {
  if (!annulus::cpu::winograd_offered()) return;
  for (const WinogradShape& shape : shapes) {
    CAPTURE(shape.out);
    const Layer layer(shape);
    const Found one = compute(layer, 1);
    for (const int threads : {2, 3, 8}) {
      CAPTURE(threads);
      CHECK(same_bits(compute(layer, threads), one));
    }
  }
}

TEST_CASE("own Winograd: bias, sum and ReLU are done to the result, in its own memory too") {
  if (!annulus::cpu::winograd_offered()) return;
  Layer layer({2, 16, 32, 7, 10, 8, 8});
  const Values plain = exact_result(layer);
  Values expected(plain.size());
  layer.to.for_each([&](std::int64_t n, std::int64_t c, std::int64_t y, std::int64_t x) {
    const auto i = static_cast<std::size_t>(layer.to.at(n, c, y, x));
    expected[i] =
        std::max(plain[i] + layer.bias[static_cast<std::size_t>(c)] + layer.addend[i], 0.0F);
  });
  const WinogradTail tail{layer.bias.data(), layer.addend.data(), true};
  CHECK(error_of(compute(layer, 2, tail).result, expected) < 1e-5);

  Values transformed(winograd_weight_bytes(layer.shape) / sizeof(float));
  auto workspace = memory(winograd_workspace(layer.shape, 1));
  winograd_transform_weight(layer.shape, layer.weight.data(), transformed.data());
  Values in_place = layer.addend;
  winograd_convolve(layer.shape, layer.source.data(), transformed.data(),
                    {layer.bias.data(), in_place.data(), true}, in_place.data(), workspace.data());
  CHECK(in_place == compute(layer, 1, tail).result);
}
