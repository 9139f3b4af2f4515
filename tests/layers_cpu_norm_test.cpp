// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <doctest/doctest.h>

#include "support/op_harness.h"

namespace annulus::testing {
namespace {

OpCase norm_case(const Shape& input, const BatchNormDesc& desc,
                 cpu::Format format = cpu::Format::plain) {
  OpCase op;
  op.make = [desc](Backend& b, const OpRequest& r) { return b.batch_norm(r, desc); };
  op.inputs = {input};
  if (desc.add) op.inputs.push_back(input);
  op.parameters = {{input[1]}, {input[1]}};
  op.statistics = input[1];
  op.format = format;
  return op;
}

constexpr cpu::Format all_formats[] = {cpu::Format::plain, cpu::Format::channels_last,
                                       cpu::Format::blocked4, cpu::Format::blocked8,
                                       cpu::Format::blocked16};

}  // namespace

TEST_CASE("batch norm gives literal answers: biased for normalising, unbiased for running") {
  OpCase op = norm_case({4, 1}, {0, false, false});
  op.input_values = {{1, 2, 3, 6}};  // mean 3, biased variance 3.5, unbiased 14/3
  op.parameter_values = {{2}, {10}};
  op.uses = 2;
  randomize(op);
  const auto backend = cpu_backend();
  const OpResult result = run(*backend, op);
  const double deviation = std::sqrt(3.5);
  const double expected[] = {10 - 4 / deviation, 10 - 2 / deviation, 10, 10 + 6 / deviation};
  for (std::size_t i = 0; i < 4; ++i) CHECK(result.output[i] == doctest::Approx(expected[i]));
  // batch / uses = 2 times the statistics
  CHECK(result.batch_sums[0][0] == doctest::Approx(6));
  CHECK(result.batch_sums[1][0] == doctest::Approx(28.0 / 3));
}

TEST_CASE("batch norm evaluates with the running statistics and eps inside the root") {
  OpCase op = norm_case({1, 2, 1, 2}, {1, false, true});
  op.input_values = {{1, 3, 5, 9}};
  op.parameter_values = {{2, 1}, {0, -4}};
  op.running = {{1, 5}, {3, 15}};  // deviations 2 and 4
  op.mode = Mode::evaluate;
  const auto backend = cpu_backend();
  for (auto format : all_formats) {
    op.format = format;
    CHECK(run(*backend, op).output == Values{0, 2, 0, 0});
  }
}

TEST_CASE("batch norm agrees with plain loops for all channels, layouts and fusions") {
  for (std::int64_t channels : {1, 7, 8, 16, 23, 24, 25, 40}) {
    for (auto format : all_formats) {
      for (int fusion = 0; fusion < 4; ++fusion) {
        CAPTURE(channels);
        CAPTURE(static_cast<int>(format));
        CAPTURE(fusion);
        const BatchNormDesc desc{1e-5, (fusion & 1) != 0, (fusion & 2) != 0};
        CHECK(against_reference(norm_case({3, channels, 5, 7}, desc, format)) < 1e-5);
        CHECK(against_reference(norm_case({4, channels, 1, 1}, desc, format)) < 1e-5);
      }
    }
    CHECK(against_reference(norm_case({6, channels}, {1e-5, false, true})) < 1e-5);
  }
}

TEST_CASE("batch norm in evaluation agrees with plain loops") {
  for (std::int64_t channels : {1, 17}) {
    for (auto format : all_formats) {
      OpCase op = norm_case({2, channels, 4, 5}, {1e-3, true, true}, format);
      op.mode = Mode::evaluate;
      op.statistics = 0;
      op.running = {random_values(channels, 5), Values(static_cast<std::size_t>(channels), 0.7F)};
      CHECK(against_reference(op) < 1e-5);
    }
  }
}

TEST_CASE("batch norm of planes larger than a stretch of sums") {
  CHECK(against_reference(norm_case({2, 3, 19, 33}, {1e-5, true, true})) < 1e-5);
  CHECK(against_reference(norm_case({2, 18, 19, 33}, {1e-5, false, true}, cpu::Format::blocked16)) <
        1e-5);
  CHECK(against_reference(norm_case({300, 20}, {1e-5, false, false})) < 1e-5);
}

TEST_CASE("batch norm keeps its digits where the mean is large") {
  for (auto format : {cpu::Format::plain, cpu::Format::blocked16}) {
    OpCase op = norm_case({4, 2, 16, 16}, {0, false, false}, format);
    Values x(std::size_t{4} * 2 * 256);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = i % 2 == 0 ? 4096.0F : 4097.0F;
    op.input_values = {x};
    op.parameter_values = {{1, 1}, {0, 0}};
    randomize(op);
    const auto backend = cpu_backend();
    const OpResult result = run(*backend, op);
    for (std::size_t i = 0; i < x.size(); ++i) {
      REQUIRE(result.output[i] == doctest::Approx(i % 2 == 0 ? -1 : 1).epsilon(1e-4));
    }
    CHECK(result.batch_sums[1][0] == doctest::Approx(4 * 0.25 * 1024 / 1023).epsilon(1e-5));
  }
}

TEST_CASE("gradients of batch norm are the differences of its outputs") {
  CHECK(gradient_error(norm_case({2, 3, 3, 3}, {1e-2, false, false})) < 5e-3);
  CHECK(gradient_error(norm_case({3, 2, 2, 2}, {1e-2, true, false}, cpu::Format::blocked8)) < 5e-3);
  CHECK(gradient_error(norm_case({5, 4}, {1e-2, false, false})) < 5e-3);
  // With ReLU, shifted so that the two inputs' values lie clearly on either side of zero.
  OpCase op = norm_case({2, 1, 3, 3}, {1e-2, true, true});
  op.parameter_values = {{0.2F}, {0}};
  Values sides(18);
  for (std::size_t i = 0; i < sides.size(); ++i) sides[i] = i % 3 == 0 ? -2.0F : 2.0F;
  op.input_values = {random_values(18, 3), sides};
  CHECK(gradient_error(op) < 5e-3);
}

TEST_CASE("batch norm gives the same bits on any number of threads") {
  for (std::int64_t channels : {3, 16, 80}) {
    for (auto format : {cpu::Format::plain, cpu::Format::blocked16, cpu::Format::channels_last}) {
      OpCase op = norm_case({5, channels, 9, 6}, {1e-5, true, true}, format);
      randomize(op);
      const OpResult one = run(*cpu_backend(1), op);
      for (int threads : {2, 3, 5}) CHECK(same_bits(one, run(*cpu_backend(threads), op)));
    }
  }
}

TEST_CASE("one value a channel does not divide by zero") {
  OpCase op = norm_case({1, 2}, {1e-5, false, false});
  op.input_values = {{3, -4}};
  op.parameter_values = {{1, 1}, {5, 6}};
  randomize(op);
  const OpResult result = run(*cpu_backend(), op);
  CHECK(result.output == Values{5, 6});
  CHECK(result.batch_sums[1] == Values{0, 0});
}

TEST_CASE("a NaN passes through batch norm with ReLU") {
  OpCase op = norm_case({2, 1, 2, 2}, {1e-5, false, true});
  op.input_values = {{1, 2, NAN, 4, 5, 6, 7, 8}};
  randomize(op);
  for (float y : run(*cpu_backend(), op).output) CHECK(std::isnan(y));
}

}  // namespace annulus::testing
