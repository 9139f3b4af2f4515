// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "core/error.h"
#include "support/naive_backend.h"
#include "support/op_harness.h"

namespace annulus::testing {
namespace {

using Labels = std::vector<std::int32_t>;

struct LossResult {
  LossSums sums;
  Values gradient;
};

LossResult run_loss(LossOp& loss, const ValueType& type, const Values& prediction,
                    const void* targets, double scale = 1) {
  const Values memory = packed(type, prediction);
  Values gradient(memory.size(), NAN);
  std::vector<std::byte> workspace(loss.workspace(), std::byte{0xFF});
  LossResult result;
  result.sums = loss.run(memory.data(), targets, scale, gradient.data(), workspace.data());
  result.gradient = unpacked(type, gradient.data());
  const LossSums alone = loss.run(memory.data(), targets, scale, nullptr, workspace.data());
  CHECK((alone.loss == result.sums.loss || std::isnan(alone.loss)));
  return result;
}

LossResult cross_entropy(const Shape& shape, const Values& scores, const Labels& labels,
                         const CrossEntropyDesc& desc = {}, double scale = 1,
                         cpu::Format format = cpu::Format::plain) {
  const auto backend = cpu_backend();
  const ValueType type = cpu::make_value(shape, format);
  return run_loss(*backend->cross_entropy(type, desc), type, scores, labels.data(), scale);
}

// Two scores with that loss for label 0: log(1 + e^d) = loss.
float margin(double loss) {
  return static_cast<float>(std::log(std::exp(loss) - 1));
}

}  // namespace

TEST_CASE("cross entropy gives literal answers") {
  const LossResult result =
      cross_entropy({2, 2}, {0, std::log(3.0F), 5, 5}, {1, 0}, {0, std::nullopt, {1, 2}}, 2);
  CHECK(result.sums.loss == doctest::Approx(std::log(4.0 / 3) + std::log(2.0)));
  CHECK(result.sums.counted == 2);
  CHECK(result.sums.correct[0] == 2);  // of equal scores the lower class comes first
  CHECK(result.sums.correct[1] == 2);
  const double expected[] = {0.5, -0.5, -1, 1};
  for (std::size_t i = 0; i < 4; ++i) CHECK(result.gradient[i] == doctest::Approx(expected[i]));
}

TEST_CASE("label smoothing spreads over all classes") {
  // Probabilities 1/8, 1/8, 3/4 and smoothing 0.3: the wanted ones are 0.1, 0.1, 0.8.
  const LossResult result = cross_entropy({1, 3}, {0, 0, std::log(6.0F)}, {2}, {0.3, {}, {1, 5}});
  CHECK(result.sums.loss == doctest::Approx(0.2 * std::log(8.0) - 0.8 * std::log(0.75)));
  CHECK(result.gradient[0] == doctest::Approx(0.025));
  CHECK(result.gradient[2] == doctest::Approx(-0.05));
}

TEST_CASE("B50 ignored labels leave loss, count and gradient") {
  const CrossEntropyDesc desc{0, 255, {1, 1}};
  const auto batch = [&](const std::vector<double>& losses, const Labels& labels) {
    Values scores;
    for (double loss : losses) {
      scores.push_back(0);
      scores.push_back(margin(loss));
    }
    return cross_entropy({static_cast<std::int64_t>(labels.size()), 2}, scores, labels, desc);
  };
  const LossResult first = batch({1, 1, 1, 1}, {0, 0, 0, 0});
  const LossResult second = batch({3, 9, 9, 9}, {0, 255, 255, 255});
  LossSums sums = first.sums;
  sums += second.sums;
  CHECK(sums.counted == 5);
  CHECK(sums.loss / sums.counted == doctest::Approx(1.4));
  CHECK(second.gradient[0] != 0);
  for (std::size_t i = 2; i < 8; ++i) CHECK(second.gradient[i] == 0);
  sums = first.sums;
  sums += batch({9, 9}, {255, 255}).sums;
  CHECK(sums.loss / sums.counted == doctest::Approx(1));
  const LossResult none = batch({9, 9}, {255, 255});
  CHECK(none.sums.loss == 0);
  CHECK(none.sums.counted == 0);
  CHECK(none.gradient == Values(4, 0));
}

TEST_CASE("top-k counts classes ahead of the label, ties by the lower class") {
  const CrossEntropyDesc desc{0, {}, {1, 2}};
  const auto correct = [&](const Values& scores, std::int32_t label) {
    const auto sums = cross_entropy({1, 4}, scores, {label}, desc).sums;
    return 10 * sums.correct[0] + sums.correct[1];
  };
  CHECK(correct({1, 4, 3, 2}, 1) == 11);
  CHECK(correct({1, 4, 3, 2}, 2) == 1);
  CHECK(correct({1, 4, 3, 2}, 3) == 0);
  CHECK(correct({5, 5, 5, 5}, 0) == 11);
  CHECK(correct({5, 5, 5, 5}, 1) == 1);
  CHECK(correct({5, 5, 5, 5}, 2) == 0);
}

TEST_CASE("a NaN or infinite score makes the loss NaN and nothing correct") {
  for (float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (std::int32_t label : {0, 1}) {
      const LossResult result = cross_entropy({2, 2}, {1, 0, bad, 0}, {0, label});
      CHECK(std::isnan(result.sums.loss));
      CHECK(result.sums.counted == 2);
      CHECK(result.sums.correct[0] == 1);
    }
  }
}

TEST_CASE("large scores neither overflow nor lose the loss") {
  const LossResult result = cross_entropy({1, 2}, {3e38F, -3e38F}, {0});
  CHECK(result.sums.loss == 0);
  CHECK(cross_entropy({1, 2}, {1000, 0}, {1}).sums.loss == doctest::Approx(1000));
}

TEST_CASE("a label out of range is a data error that names the sample") {
  for (std::int32_t label : {3, -1}) {
    try {
      cross_entropy({2, 3}, Values(6, 0), {0, label});
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::data);
      CHECK(error.message() == fmt::format("label {} of sample 1 of the batch is not one of the 3 "
                                           "classes",
                                           label));
    }
  }
}

TEST_CASE("cross entropy agrees with plain loops in every layout and on any number of threads") {
  const auto naive = make_naive_backend();
  for (std::int64_t classes : {1, 10, 17, 40}) {
    const Shape shape{5, classes, 1, 1};
    const Values scores = random_values(5 * classes, 3);
    Labels labels;
    for (int i = 0; i < 5; ++i) labels.push_back(static_cast<std::int32_t>(i * 7 % classes));
    const CrossEntropyDesc desc{0.1, {}, {1, 5}};
    const ValueType plain = naive->plain(shape);
    const LossResult expected =
        run_loss(*naive->cross_entropy(plain, desc), plain, scores, labels.data(), 0.2);
    for (auto format : {cpu::Format::plain, cpu::Format::blocked8, cpu::Format::blocked16}) {
      const LossResult found = cross_entropy(shape, scores, labels, desc, 0.2, format);
      CHECK(found.sums.loss == doctest::Approx(expected.sums.loss));
      CHECK(found.sums.correct[0] == expected.sums.correct[0]);
      CHECK(found.sums.correct[1] == expected.sums.correct[1]);
      CHECK(difference(found.gradient, expected.gradient) < 1e-6);
    }
    const ValueType type = cpu::make_value(shape, cpu::Format::plain);
    const LossResult one = cross_entropy(shape, scores, labels, desc, 0.2);
    const auto threads = cpu_backend(3);
    const LossResult three =
        run_loss(*threads->cross_entropy(type, desc), type, scores, labels.data(), 0.2);
    CHECK(one.sums.loss == three.sums.loss);
    CHECK(one.gradient == three.gradient);
  }
}

TEST_CASE("mean squared error: y = w x, target 0, x = 1..10 has mean 38.5 and gradient 77") {
  const auto backend = cpu_backend();
  const ValueType type = backend->plain({10, 1});
  const Values x = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const Values zero(10, 0);
  const LossResult result = run_loss(*backend->mean_squared_error(type), type, x, zero.data(), 0.1);
  CHECK(result.sums.loss / result.sums.counted == doctest::Approx(38.5));
  CHECK(result.sums.absolute_error / result.sums.counted == doctest::Approx(5.5));
  double gradient = 0;
  for (std::size_t i = 0; i < 10; ++i) gradient += static_cast<double>(result.gradient[i]) * x[i];
  CHECK(gradient == doctest::Approx(77));
}

TEST_CASE("mean squared error is a mean over elements and a sum over samples") {
  const auto backend = cpu_backend();
  for (auto format : {cpu::Format::plain, cpu::Format::channels_last, cpu::Format::blocked8}) {
    const ValueType type = cpu::make_value({2, 2, 1, 2}, format);
    const Values prediction = {1, 2, 3, 4, 0, 0, 0, 0};
    const Values wanted = {1, 0, 3, 0, 2, 0, 0, 0};
    const LossResult result =
        run_loss(*backend->mean_squared_error(type), type, prediction, wanted.data());
    CHECK(result.sums.loss == doctest::Approx(20.0 / 4 + 4.0 / 4));
    CHECK(result.sums.absolute_error == doctest::Approx(6.0 / 4 + 2.0 / 4));
    CHECK(result.sums.counted == 2);
    CHECK(result.gradient == Values{0, 1, 0, 2, -1, 0, 0, 0});
  }
}

TEST_CASE("gradients of the losses are the differences of their sums") {
  const auto backend = cpu_backend();
  const ValueType type = backend->plain({3, 4});
  const Labels labels = {0, 3, 1};
  const Values wanted = random_values(12, 9);
  const auto check = [&](LossOp& loss, const void* targets) {
    Values x = random_values(12, 8);
    const LossResult result = run_loss(loss, type, x, targets, 1);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float before = x[i];
      x[i] = before + 0x1p-7F;
      const double up = run_loss(loss, type, x, targets).sums.loss;
      x[i] = before - 0x1p-7F;
      const double down = run_loss(loss, type, x, targets).sums.loss;
      x[i] = before;
      CHECK((up - down) / 0x1p-6 == doctest::Approx(result.gradient[i]).epsilon(1e-3));
    }
  };
  check(*backend->cross_entropy(type, {0.1, {}, {1, 2}}), labels.data());
  check(*backend->mean_squared_error(type), wanted.data());
}

}  // namespace annulus::testing
