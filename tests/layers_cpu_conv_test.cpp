// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "support/op_harness.h"

namespace annulus::testing {
namespace {

OpCase conv_case(const Shape& input, const Conv2dDesc& desc,
                 cpu::Format format = cpu::Format::plain) {
  OpCase op;
  op.make = [desc](Backend& b, const OpRequest& r) { return b.conv2d(r, desc); };
  op.inputs = {input};
  op.parameters = {{desc.out_channels, input[1] / desc.groups, desc.kernel.h, desc.kernel.w}};
  if (desc.bias) op.parameters.push_back({desc.out_channels});
  op.format = format;
  return op;
}

Conv2dDesc conv(std::int64_t out, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                std::int64_t groups = 1, std::int64_t dilation = 1) {
  return {.out_channels = out,
          .kernel = {kernel, kernel},
          .stride = {stride, stride},
          .dilation = {dilation, dilation},
          .padding = {padding, padding, padding, padding},
          .groups = groups,
          .bias = true};
}

// One channel, no bias.
Conv2dDesc row_conv(std::int64_t width, std::int64_t height = 1) {
  Conv2dDesc desc;
  desc.kernel = {height, width};
  desc.bias = false;
  return desc;
}

OpCase linear_case(const Shape& input, const LinearDesc& desc,
                   cpu::Format format = cpu::Format::plain) {
  OpCase op;
  op.make = [desc](Backend& b, const OpRequest& r) { return b.linear(r, desc); };
  op.inputs = {input};
  op.parameters = {{desc.out_features, input.elements_from(1)}};
  if (desc.bias) op.parameters.push_back({desc.out_features});
  op.format = format;
  return op;
}

}  // namespace

TEST_CASE("B13 non-square images keep their axes in a convolution") {
  const Shape shape{4, 2, 3, 5};
  OpCase op = conv_case(shape, row_conv(1));
  Values x;
  for (int n = 0; n < 4; ++n) {
    for (int c = 0; c < 2; ++c) {
      for (int h = 0; h < 3; ++h) {
        for (int w = 0; w < 5; ++w)
          x.push_back(static_cast<float>(1000 * n + 100 * c + 10 * h + w));
      }
    }
  }
  op.input_values = {x};
  op.parameter_values = {{0, 1}};
  op.mode = Mode::evaluate;
  const auto backend = cpu_backend();
  for (auto format : {cpu::Format::plain, cpu::Format::channels_last, cpu::Format::blocked8}) {
    op.format = format;
    const OpResult result = run(*backend, op);
    for (int i = 0; i < 60; ++i) {
      const int n = i / 15;
      CHECK(result.output[i] == 1000 * n + 100 + 10 * (i / 5 % 3) + i % 5);
    }
  }
  // A 3x5 kernel with one element set, at row 1 and column 3, picks that pixel.
  OpCase picked = conv_case({1, 2, 3, 5}, row_conv(5, 3));
  picked.input_values = {Values(x.begin(), x.begin() + 30)};
  picked.parameter_values = {Values(30, 0)};
  picked.parameter_values[0][15 + 1 * 5 + 3] = 1;
  picked.mode = Mode::evaluate;
  CHECK(run(*backend, picked).output == Values{113});
}

TEST_CASE("B47 dilation counts from one") {
  Conv2dDesc desc = row_conv(3);
  const auto backend = cpu_backend();
  const auto output = [&](std::int64_t dilation) {
    desc.dilation = {1, dilation};
    OpCase op = conv_case({1, 1, 1, 7}, desc);
    op.input_values = {{1, 2, 3, 4, 5, 6, 7}};
    op.parameter_values = {{1, 1, 1}};
    randomize(op);
    return run(*backend, op).output;
  };
  CHECK(output(1) == Values{6, 9, 12, 15, 18});
  CHECK(output(2) == Values{9, 12, 15});
  CHECK(gradient_error(conv_case({2, 2, 7, 9}, conv(3, 3, 1, 0, 1, 2))) < 2e-3);
}

TEST_CASE("B65 depthwise weight gradients are exact for every number of channels") {
  const auto backend = cpu_backend();
  for (std::int64_t channels : {1, 7, 8, 16, 23, 24, 25}) {
    for (auto format : {cpu::Format::plain, cpu::Format::blocked16}) {
      Conv2dDesc desc = conv(channels, 3, 2, 1, channels);
      desc.bias = false;
      OpCase op = conv_case({1, channels, 6, 6}, desc, format);
      op.input_values = {Values(static_cast<std::size_t>(channels * 36), 1)};
      op.parameter_values = {Values(static_cast<std::size_t>(channels * 9), 1)};
      op.output_gradient = Values(static_cast<std::size_t>(channels * 9), 1);
      const Values gradient = run(*backend, op).parameter_gradients[0];
      const Values expected = {4, 6, 6, 6, 9, 9, 6, 9, 9};
      for (std::size_t i = 0; i < gradient.size(); ++i) CHECK(gradient[i] == expected[i % 9]);
    }
  }
}

TEST_CASE("B65 grouped convolutions agree with plain loops at every width") {
  for (std::int64_t channels : {1, 7, 8, 16, 23, 24, 25}) {
    for (std::int64_t width : {5, 6, 11, 16, 17}) {
      CAPTURE(channels);
      CAPTURE(width);
      CHECK(against_reference(
                conv_case({2, channels, 5, width}, conv(channels, 3, 2, 1, channels))) < 1e-5);
      if (channels % 2 != 0) continue;
      CHECK(against_reference(conv_case({1, channels, 6, width}, conv(channels * 2, 3, 2, 1, 2))) <
            1e-5);
    }
  }
}

TEST_CASE("convolutions agree with plain loops for odd channels in every layout") {
  for (std::int64_t in : {1, 3, 8, 17}) {
    for (std::int64_t out : {1, 16, 23}) {
      for (auto format : {cpu::Format::plain, cpu::Format::channels_last, cpu::Format::blocked8,
                          cpu::Format::blocked16}) {
        CAPTURE(in);
        CAPTURE(out);
        CAPTURE(static_cast<int>(format));
        CHECK(against_reference(conv_case({2, in, 7, 6}, conv(out, 3, 1, 1), format)) < 1e-5);
      }
    }
  }
}

TEST_CASE("convolutions agree with plain loops for kernels, strides, dilation and padding") {
  for (std::int64_t kernel : {1, 2, 3, 5}) {
    for (std::int64_t stride : {1, 2, 3}) {
      for (std::int64_t dilation : {1, 2}) {
        Conv2dDesc desc = conv(5, kernel, stride, kernel / 2, 1, dilation);
        CAPTURE(kernel);
        CAPTURE(stride);
        CAPTURE(dilation);
        CHECK(against_reference(conv_case({3, 4, 13, 10}, desc)) < 1e-5);
        desc.padding = {kernel - 1, 0, 0, kernel - 1};
        desc.bias = false;
        CHECK(against_reference(conv_case({1, 16, 13, 10}, desc)) < 1e-5);
      }
    }
  }
}

TEST_CASE("convolutions agree with plain loops for odd image sizes down to one pixel") {
  for (std::int64_t size : {1, 2, 3, 5, 7, 13, 17, 31}) {
    CAPTURE(size);
    CHECK(against_reference(conv_case({1, 1, size, size}, conv(1, 3, 2, 1))) < 1e-5);
    CHECK(against_reference(conv_case({2, 16, size, size}, conv(32, 1, 2, 0))) < 1e-5);
    CHECK(against_reference(conv_case({2, 3, size, size}, conv(16, 7, 2, 3))) < 1e-5);
  }
}

TEST_CASE("gradients of convolutions are the differences of their outputs") {
  CHECK(gradient_error(conv_case({2, 3, 5, 4}, conv(4, 3, 2, 1))) < 2e-3);
  CHECK(gradient_error(conv_case({1, 4, 5, 5}, conv(4, 3, 1, 1, 4))) < 2e-3);
  CHECK(gradient_error(conv_case({1, 4, 4, 5}, conv(6, 2, 1, 0, 2))) < 2e-3);
  Conv2dDesc uneven = conv(2, 3, 2, 0);
  uneven.padding = {0, 1, 2, 0};
  CHECK(gradient_error(conv_case({1, 2, 5, 6}, uneven)) < 2e-3);
}

TEST_CASE("linear layers give literal answers and gradients") {
  OpCase op = linear_case({2, 3}, {2, true});
  op.input_values = {{1, 2, 3, 4, 5, 6}};
  op.parameter_values = {{1, 0, -1, 0.5F, 0.5F, 0.5F}, {10, 20}};
  op.output_gradient = {1, 2, 3, 4};
  const auto backend = cpu_backend();
  const OpResult result = run(*backend, op);
  CHECK(result.output == Values{8, 23, 8, 27.5F});
  CHECK(result.input_gradients[0] == Values{2, 1, 0, 5, 2, -1});
  CHECK(result.parameter_gradients[0] == Values{13, 17, 21, 18, 24, 30});
  CHECK(result.parameter_gradients[1] == Values{4, 6});
}

TEST_CASE("linear layers agree with plain loops, from vectors and from images in every layout") {
  for (std::int64_t out : {1, 7, 16, 33}) {
    CAPTURE(out);
    CHECK(against_reference(linear_case({1, 1}, {out, true})) < 1e-5);
    CHECK(against_reference(linear_case({5, 23}, {out, false})) < 1e-5);
    for (auto format : {cpu::Format::plain, cpu::Format::channels_last, cpu::Format::blocked8,
                        cpu::Format::blocked16}) {
      CHECK(against_reference(linear_case({3, 17, 2, 3}, {out, true}, format)) < 1e-5);
      CHECK(against_reference(linear_case({3, 32, 1, 1}, {out, true}, format)) < 1e-5);
    }
  }
  CHECK(gradient_error(linear_case({3, 5}, {4, true})) < 2e-3);
}

}  // namespace annulus::testing
