// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <doctest/doctest.h>

#include "support/op_harness.h"

namespace annulus::testing {
namespace {

OpCase pool_case(const Shape& input, const Pool2dDesc& desc,
                 cpu::Format format = cpu::Format::plain) {
  OpCase op;
  op.make = [desc](Backend& b, const OpRequest& r) { return b.pool2d(r, desc); };
  op.inputs = {input};
  op.format = format;
  return op;
}

Pool2dDesc pool(PoolKind kind, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                Extent2d output, bool count_padding = false) {
  return {kind,   {kernel, kernel}, {stride, stride}, {padding, padding, padding, padding},
          output, count_padding};
}

// One row of numbers, pooled along it.
Pool2dDesc row_pool(PoolKind kind, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                    std::int64_t output) {
  return {kind, {1, kernel}, {1, stride}, {0, padding, 0, padding}, {1, output}, false};
}

constexpr cpu::Format all_formats[] = {cpu::Format::plain, cpu::Format::channels_last,
                                       cpu::Format::blocked4, cpu::Format::blocked8,
                                       cpu::Format::blocked16};

}  // namespace

TEST_CASE("B23 the average's divisor at borders") {
  OpCase op = pool_case({1, 1, 3, 3}, pool(PoolKind::average, 3, 1, 1, {3, 3}));
  op.input_values = {Values(9, 1)};
  randomize(op);
  CHECK(run(*cpu_backend(), op).output == Values(9, 1));

  op = pool_case({1, 1, 3, 3}, pool(PoolKind::average, 3, 1, 1, {3, 3}, true));
  op.input_values = {Values(9, 1)};
  randomize(op);
  const Values counted = run(*cpu_backend(), op).output;
  for (std::size_t i : {0, 2, 6, 8}) CHECK(counted[i] == doctest::Approx(4.0 / 9));
  for (std::size_t i : {1, 3, 5, 7}) CHECK(counted[i] == doctest::Approx(6.0 / 9));
  CHECK(counted[4] == 1);

  op = pool_case({1, 1, 1, 4}, row_pool(PoolKind::average, 3, 2, 0, 2));
  op.input_values = {{1, 2, 3, 4}};
  randomize(op);
  CHECK(run(*cpu_backend(), op).output == Values{2, 3.5F});

  // Counted padding ends with the padded image, not with the window: 9 / 3 and (4 + 0) / 2.
  Pool2dDesc desc = row_pool(PoolKind::average, 3, 3, 1, 2);
  desc.count_padding = true;
  op = pool_case({1, 1, 1, 3}, desc);
  op.input_values = {{4, 5, 4}};
  randomize(op);
  CHECK(run(*cpu_backend(), op).output == Values{3, 2});
}

TEST_CASE("B23 floor and ceil sizes agree with plain loops, forward and backward") {
  struct Case {
    std::int64_t in, kernel, stride, padding, floor, ceil;
  };
  for (const Case& c : {Case{112, 3, 2, 0, 55, 56},
                        {64, 3, 2, 1, 32, 33},
                        {5, 2, 3, 1, 2, 2},
                        {4, 3, 2, 0, 1, 2}}) {
    for (std::int64_t out : {c.floor, c.ceil}) {
      for (auto kind : {PoolKind::max, PoolKind::average}) {
        CAPTURE(c.in);
        CAPTURE(out);
        CHECK(against_reference(pool_case({1, 2, c.in, c.in}, pool(kind, c.kernel, c.stride,
                                                                   c.padding, {out, out}))) < 1e-6);
        CHECK(against_reference(pool_case({1, 2, c.in, c.in}, pool(kind, c.kernel, c.stride,
                                                                   c.padding, {out, out}, true))) <
              1e-6);
      }
    }
  }
}

TEST_CASE("B49 padding never wins a maximum") {
  OpCase op = pool_case({1, 1, 2, 2}, pool(PoolKind::max, 3, 1, 1, {2, 2}));
  op.input_values = {Values(4, -1)};
  randomize(op);
  CHECK(run(*cpu_backend(), op).output == Values(4, -1));
}

TEST_CASE("B49 gradients of overlapping windows add up, ties go to the first") {
  OpCase op = pool_case({1, 1, 1, 8}, row_pool(PoolKind::max, 4, 2, 0, 3));
  op.input_values = {{0, 0, 9, 0, 0, 0, 1, 0}};
  op.output_gradient = {1, 1, 1};
  CHECK(run(*cpu_backend(), op).input_gradients[0] == Values{0, 0, 2, 0, 0, 0, 1, 0});

  op = pool_case({1, 1, 1, 4}, row_pool(PoolKind::max, 4, 4, 0, 1));
  op.input_values = {{2, 5, 5, 5}};
  op.output_gradient = {3};
  CHECK(run(*cpu_backend(), op).input_gradients[0] == Values{0, 3, 0, 0});
}

TEST_CASE("B49 a NaN in the window is its maximum, in every layout") {
  for (auto format : all_formats) {
    OpCase op = pool_case({1, 1, 1, 6}, row_pool(PoolKind::max, 3, 3, 0, 2), format);
    op.input_values = {{1, NAN, 3, 4, 5, 6}};
    op.output_gradient = {7, 8};
    const OpResult result = run(*cpu_backend(), op);
    CHECK(std::isnan(result.output[0]));
    CHECK(result.output[1] == 6);
    CHECK(result.input_gradients[0] == Values{0, 7, 0, 0, 0, 8});
  }
}

TEST_CASE("pooling agrees with plain loops for all channels and layouts") {
  for (std::int64_t channels : {1, 7, 8, 16, 23, 24, 25}) {
    for (auto format : all_formats) {
      for (auto kind : {PoolKind::max, PoolKind::average}) {
        CAPTURE(channels);
        CAPTURE(static_cast<int>(format));
        CHECK(against_reference(
                  pool_case({2, channels, 7, 5}, pool(kind, 3, 2, 1, {4, 3}), format)) < 1e-6);
        // Global: the window is the image.
        const Pool2dDesc global{kind, {7, 5}, {1, 1}, {}, {1, 1}, false};
        CHECK(against_reference(pool_case({2, channels, 7, 5}, global, format)) < 1e-6);
      }
    }
  }
}

TEST_CASE("pooling with uneven padding and windows of more than 256 elements") {
  for (auto kind : {PoolKind::max, PoolKind::average}) {
    Pool2dDesc desc{kind, {2, 3}, {2, 2}, {0, 1, 1, 0}, {3, 3}, true};
    CHECK(against_reference(pool_case({2, 3, 5, 6}, desc)) < 1e-6);
    desc = {kind, {18, 17}, {1, 1}, {}, {2, 3}, false};
    CHECK(against_reference(pool_case({1, 2, 19, 19}, desc)) < 1e-6);
    CHECK(against_reference(pool_case({1, 2, 19, 19}, desc, cpu::Format::blocked16)) < 1e-6);
  }
}

TEST_CASE("gradients of pooling are the differences of its outputs") {
  OpCase op = pool_case({1, 2, 5, 4}, pool(PoolKind::max, 3, 2, 1, {3, 2}));
  op.input_values = {distinct_values(40, 3)};
  CHECK(gradient_error(op) < 1e-3);
  CHECK(gradient_error(pool_case({2, 2, 5, 4}, pool(PoolKind::average, 3, 2, 1, {3, 2}))) < 1e-3);
}

}  // namespace annulus::testing
