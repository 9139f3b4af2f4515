// SPDX-License-Identifier: Apache-2.0
// Convolutions by Winograd's algorithm against the direct form: another rounding, the same layer.
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/device.h"
#include "core/placement.h"
#include "layers/cpu_isa.h"
#include "support/op_harness.h"

using annulus::Backend;
using annulus::BackendOptions;
using annulus::Conv2dDesc;
using annulus::make_cpu_backend;
using annulus::make_cpu_device;
using annulus::OpRequest;
using annulus::Placement;
using annulus::Shape;
using annulus::cpu::Format;
using annulus::testing::OpCase;
using annulus::testing::OpResult;
using annulus::testing::randomize;
using annulus::testing::run;
using annulus::testing::Values;

namespace {

std::unique_ptr<Backend> backend(bool winograd) {
  const auto device = make_cpu_device(Placement{});
  return make_cpu_backend(*device, BackendOptions{.winograd = winograd});
}

// A 3x3 convolution of stride 1 with padding 1.
OpCase convolution(std::int64_t batch, std::int64_t in, std::int64_t out, std::int64_t height,
                   std::int64_t width) {
  Conv2dDesc desc;
  desc.out_channels = out;
  desc.kernel = {3, 3};
  desc.padding = {1, 1, 1, 1};
  OpCase op;
  op.make = [desc](Backend& b, const OpRequest& request) { return b.conv2d(request, desc); };
  op.inputs = {Shape{batch, in, height, width}};
  op.parameters = {Shape{out, in, 3, 3}, Shape{out}};
  op.format = Format::blocked16;
  randomize(op);
  return op;
}

// |a - b| / |b|, Euclidean norms.
double norm_difference(const Values& a, const Values& b) {
  REQUIRE(a.size() == b.size());
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - b[i], 2);
    size += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / size);
}

bool is_winograd(const OpResult& result) {
  return result.implementation.find("wino") != std::string::npos;
}

// oneDNN has it for AVX-512 alone, and before version 3; annulus has its own for AVX2, of whole
// blocks of channels.
enum class Offered { none, onednn, own };
Offered offered() {
  const OpResult result = run(*backend(true), convolution(16, 64, 64, 16, 16));
  if (!is_winograd(result)) return Offered::none;
  return result.implementation == "winograd:avx2" ? Offered::own : Offered::onednn;
}

}  // namespace

TEST_CASE("Winograd's convolutions are within 1e-4 of the direct ones, outputs and gradients") {
  const auto winograd = backend(true);
  const auto direct = backend(false);
  struct Size {
    std::int64_t batch, in, out, height, width;
  };
  // Whole and half empty tiles, channels that fill no block, images that are not square.
  const Size sizes[] = {{8, 64, 64, 16, 16}, {3, 64, 64, 29, 31},   {16, 32, 48, 13, 9},
                        {4, 64, 80, 24, 24}, {16, 128, 128, 7, 13}, {7, 33, 47, 19, 21}};
  int taken = 0;
  for (const Size& size : sizes) {
    CAPTURE(size.in);
    CAPTURE(size.height);
    const OpCase op = convolution(size.batch, size.in, size.out, size.height, size.width);
    const OpResult found = run(*winograd, op);
    const OpResult expected = run(*direct, op);
    CHECK(!is_winograd(expected));
    taken += is_winograd(found) ? 1 : 0;
    CHECK(norm_difference(found.output, expected.output) < 1e-4);
    CHECK(norm_difference(found.input_gradients[0], expected.input_gradients[0]) < 1e-4);
    CHECK(norm_difference(found.parameter_gradients[0], expected.parameter_gradients[0]) < 1e-4);
    CHECK(norm_difference(found.parameter_gradients[1], expected.parameter_gradients[1]) < 1e-4);
  }
  const Offered by = offered();
  CHECK(taken == (by == Offered::onednn ? 6 : by == Offered::own ? 5 : 0));
  if (annulus::effective_cpu_isa() == "avx2") CHECK(by == Offered::own);
}

TEST_CASE("Winograd's algorithm is taken by shape alone, and never where it does not pay") {
  const auto winograd = backend(true);
  CHECK(!is_winograd(run(*winograd, convolution(16, 16, 16, 16, 16))));  // few channels
  CHECK(!is_winograd(run(*winograd, convolution(1, 64, 64, 8, 8))));     // few tiles
  OpCase dilated = convolution(16, 64, 64, 16, 16);
  dilated.make = [](Backend& b, const OpRequest& request) {
    Conv2dDesc desc;
    desc.out_channels = 64;
    desc.kernel = {3, 3};
    desc.dilation = {2, 2};
    desc.padding = {2, 2, 2, 2};
    return b.conv2d(request, desc);
  };
  CHECK(!is_winograd(run(*winograd, dilated)));
}

TEST_CASE("Winograd's convolutions give the same bits each time, and spread NaN and infinity") {
  OpCase op = convolution(8, 64, 64, 16, 16);
  const OpResult first = run(*backend(true), op);
  CHECK(annulus::testing::same_bits(run(*backend(true), op), first));
  op.input_values[0][0] = NAN;
  const OpResult spoiled = run(*backend(true), op);
  CHECK(std::isnan(spoiled.output[0]));
  CHECK(spoiled.output.back() == first.output.back());  // another image has none of it
}
