// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "core/cpu/parallel.h"
#include "core/error.h"
#include "core/placement.h"
#include "core/update_ops.h"

namespace annulus {
namespace {

using Floats = std::vector<float>;

// The number of compute threads during a scope.
class Threads {
 public:
  explicit Threads(int threads) { set_parallel_threads(threads); }
  ~Threads() { set_parallel_threads(before_); }

 private:
  int before_ = parallel_threads();
};

Floats random_floats(std::size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Floats values(count);
  for (float& value : values) value = uniform(engine);
  return values;
}

bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::vector<DecayRange> one_range(const Floats& values, float decay = 0) {
  return {{0, static_cast<std::int64_t>(values.size()), decay}};
}

// More elements than fill the threads, and ranges that no block, vector or thread ends with.
constexpr std::size_t many = 300007;
const std::vector<DecayRange> uneven = {
    {0, 7, 0.1F}, {7, 50001, 0}, {50001, 50002, 0.5F}, {50002, 300007, 0.01F}};

}  // namespace

TEST_CASE("a gradient's squares are summed after scaling") {
  const auto ops = make_cpu_update_ops();
  const Floats gradient = {3, -4, 12};
  CHECK(ops->inspect(gradient, 1).sum_of_squares == 169);
  CHECK(ops->inspect(gradient, 0.5).sum_of_squares == 42.25);
  CHECK(ops->inspect(gradient, -2).sum_of_squares == 676);
  CHECK(ops->inspect(gradient, 1).finite);
  CHECK(ops->inspect({}, 1).sum_of_squares == 0);
  CHECK(ops->inspect({}, 1).finite);
}

TEST_CASE("every element of a gradient counts once, at any length") {
  const auto ops = make_cpu_update_ops();
  for (std::size_t count : {1U, 15U, 16U, 17U, 16383U, 16384U, 16385U, 32768U, 100003U}) {
    const Floats ones(count, 1);
    CHECK(ops->inspect(ones, 3).sum_of_squares == 9.0 * static_cast<double>(count));
  }
}

TEST_CASE("the sum of squares is right beyond the range and precision of fp32") {
  const auto ops = make_cpu_update_ops();
  const Floats huge(1000, 3e38F);
  const double square = static_cast<double>(3e38F) * static_cast<double>(3e38F);
  CHECK(ops->inspect(huge, 1).sum_of_squares == doctest::Approx(1000 * square).epsilon(1e-14));
  CHECK(ops->inspect(huge, 1).finite);

  const Floats values = random_floats(many, 1);
  long double sum = 0;
  for (float v : values) sum += static_cast<long double>(v) * v;
  CHECK(ops->inspect(values, 1).sum_of_squares ==
        doctest::Approx(static_cast<double>(sum)).epsilon(1e-14));
}

TEST_CASE("one element that is not finite is seen wherever it is") {
  const auto ops = make_cpu_update_ops();
  const float bad[] = {std::numeric_limits<float>::quiet_NaN(),
                       std::numeric_limits<float>::infinity(),
                       -std::numeric_limits<float>::infinity()};
  Floats gradient(many, 0.5F);
  for (std::size_t position : {std::size_t{0}, std::size_t{16384}, std::size_t{170000}, many - 1}) {
    for (float value : bad) {
      gradient[position] = value;
      CHECK_FALSE(ops->inspect(gradient, 1).finite);
      CHECK_FALSE(ops->inspect(gradient, 0).finite);
    }
    gradient[position] = 0.5F;
    CHECK(ops->inspect(gradient, 1).finite);
  }
  // A scale of 0 / 0: no sample counted.
  CHECK_FALSE(ops->inspect(gradient, std::nan("")).finite);
}

TEST_CASE("updates have the same bits with any number of threads") {
  const auto ops = make_cpu_update_ops();
  const Floats start = random_floats(many, 2);
  const Floats gradient = random_floats(many, 3);
  struct Result {
    Floats plain, momentum, velocity, nesterov, adam, first, second;
    double sum;
  };
  const auto run = [&](int threads) {
    const Threads scope(threads);
    Result r{start, start,        Floats(many), start,
             start, Floats(many), Floats(many), ops->inspect(gradient, 0.3).sum_of_squares};
    Floats other(many);
    for (std::int64_t t = 1; t <= 2; ++t) {
      ops->sgd(r.plain, {}, gradient, uneven, {0.1F, 0, false, 0.3F, 0.2F});
      ops->sgd(r.momentum, r.velocity, gradient, uneven, {0.1F, 0.9F, false, 0.3F, 0});
      ops->sgd(r.nesterov, other, gradient, uneven, {0.1F, 0.9F, true, 0.3F, 0});
      AdamWStep step;
      step.lr = 0.01F;
      step.t = t;
      ops->adamw(r.adam, r.first, r.second, gradient, uneven, step);
    }
    return r;
  };
  const Result one = run(1);
  for (int threads : {2, 3, 7}) {
    CAPTURE(threads);
    const Result more = run(threads);
    CHECK(one.sum == more.sum);
    CHECK(same_bits(one.plain, more.plain));
    CHECK(same_bits(one.momentum, more.momentum));
    CHECK(same_bits(one.velocity, more.velocity));
    CHECK(same_bits(one.nesterov, more.nesterov));
    CHECK(same_bits(one.adam, more.adam));
    CHECK(same_bits(one.first, more.first));
    CHECK(same_bits(one.second, more.second));
  }
}

TEST_CASE("an update does to each element what its formula says, and decay keeps to its range") {
  const auto ops = make_cpu_update_ops();
  const Floats start = random_floats(many, 4);
  const Floats gradient = random_floats(many, 5);
  Floats weights = start;
  Floats velocity = random_floats(many, 6);
  const Floats before = velocity;
  const Threads scope(3);
  ops->sgd(weights, velocity, gradient, uneven, {0.1F, 0.9F, true, 2, 1.5F});
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < many; ++i) {
    const double decay = i < 7 ? 0.1 : i < 50001 ? 0 : i < 50002 ? 0.5 : 0.01;
    const double clipped = std::fmax(-1.5, std::fmin(1.5, 2.0 * gradient[i]));
    const double g = clipped + decay * start[i];
    const double v = 0.9 * before[i] + g;
    const double w = start[i] - 0.1 * (g + 0.9 * v);
    if (std::abs(velocity[i] - v) > 1e-6 || std::abs(weights[i] - w) > 1e-6) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("clipping by value comes after the scale") {
  const auto ops = make_cpu_update_ops();
  Floats weights = {0, 0, 0, 0};
  const Floats gradient = {8, -8, 1, -0.5F};
  ops->sgd(weights, {}, gradient, one_range(weights), {1, 0, false, 0.25F, 0.5F});
  CHECK(weights == Floats{-0.5F, 0.5F, -0.25F, 0.125F});
}

TEST_CASE("AdamW's first step is lr long whatever the gradient's size") {
  const auto ops = make_cpu_update_ops();
  Floats weights = {0, 0, 0};
  Floats first(3);
  Floats second(3);
  const Floats gradient = {1000, -1, 1e-3F};
  AdamWStep step;
  step.lr = 0.5F;
  ops->adamw(weights, first, second, gradient, one_range(weights), step);
  CHECK(weights[0] == doctest::Approx(-0.5).epsilon(1e-6));
  CHECK(weights[1] == doctest::Approx(0.5).epsilon(1e-6));
  CHECK(weights[2] == doctest::Approx(-0.5 / (1 + 1e-5)).epsilon(1e-6));
}

TEST_CASE("AdamW late in a run has no bias left to correct") {
  const auto ops = make_cpu_update_ops();
  Floats weights = {1};
  Floats first = {0.5F};
  Floats second = {4};
  AdamWStep step;
  step.lr = 0.25F;
  step.t = 3000000000;
  const Floats gradient = {0.5F};
  ops->adamw(weights, first, second, gradient, one_range(weights), step);
  CHECK(weights[0] == doctest::Approx(1 - 0.25 * 0.5 / std::sqrt(0.999 * 4 + 0.001 * 0.25)));
}

TEST_CASE("running statistics follow the mean of what was summed") {
  const auto ops = make_cpu_update_ops();
  Floats running = {1, -2};
  const Floats sum = {30, 0};
  ops->follow(running, sum, 10, 0.25);
  CHECK(running == Floats{1.5F, -1.5F});
  CHECK_THROWS_AS(ops->follow(running, sum, 0, 0.25), Error);
}

TEST_CASE("an update refuses buffers and ranges that do not fit") {
  const auto ops = make_cpu_update_ops();
  Floats weights(4);
  Floats short_one(3);
  const Floats gradient(4);
  const SgdStep plain{0.1F};
  const SgdStep momentum{0.1F, 0.9F};
  const std::vector<DecayRange> gap = {{0, 1, 0}, {2, 4, 0}};
  const std::vector<DecayRange> partial = {{0, 3, 0}};
  const auto all = one_range(weights);
  CHECK_THROWS_WITH(ops->sgd(weights, {}, short_one, all, plain),
                    "length of the gradient: expected 4, found 3");
  CHECK_THROWS_WITH(ops->sgd(weights, short_one, gradient, all, momentum),
                    "length of the velocity: expected 4, found 3");
  CHECK_THROWS_WITH(ops->sgd(weights, weights, gradient, all, plain),
                    "length of the velocity: expected 0, found 4");
  CHECK_THROWS_WITH(ops->sgd(weights, {}, gradient, gap, plain),
                    "begin of a decay range: expected 1, found 2");
  CHECK_THROWS_WITH(ops->sgd(weights, {}, gradient, partial, plain),
                    "end of the decay ranges: expected 4, found 3");
  CHECK_THROWS_WITH(ops->adamw(weights, short_one, weights, gradient, all, {}),
                    "length of the first moment: expected 4, found 3");
  CHECK_THROWS_WITH(ops->adamw(weights, weights, short_one, gradient, all, {}),
                    "length of the second moment: expected 4, found 3");
}

TEST_CASE("the device chooses the passes of an update") {
  const auto device = make_cpu_device(Placement{});
  const auto ops = make_update_ops(*device);
  const Floats gradient = {3, 4};
  CHECK(ops->inspect(gradient, 1).sum_of_squares == 25);
}

}  // namespace annulus
