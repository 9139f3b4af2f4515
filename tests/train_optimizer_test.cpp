// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.h"
#include "core/placement.h"
#include "train/batch_plan.h"
#include "train/optimizer.h"

namespace annulus {
namespace {

using Floats = std::vector<float>;

Graph::Parameter parameter(const std::string& name, std::int64_t offset, const Shape& shape,
                           bool decay) {
  Graph::Parameter result;
  result.name = name;
  result.spec.shape = shape;
  result.spec.decay = decay;
  result.offset = offset;
  result.elements = shape.elements();
  return result;
}

// A weight of two elements, which decays, and a bias of one, which does not.
std::vector<Graph::Parameter> weight_and_bias() {
  return {parameter("fc/weight", 0, {1, 2}, true), parameter("fc/bias", 2, {1}, false)};
}

struct Fixture {
  explicit Fixture(const OptimizerSpec& spec)
      : optimizer(make_optimizer(spec, weight_and_bias(), plain_layout, *device)) {}

  std::unique_ptr<DeviceContext> device = make_cpu_device(Placement{});
  std::unique_ptr<Optimizer> optimizer;
  Floats weights = {1, -2, 0.5F};
};

using Row = std::array<double, 3>;
constexpr std::array<Row, 5> gradients = {
    {{0.5, -1, 0.25}, {-0.25, 0.75, 0.5}, {1, 0.5, -0.125}, {0.125, -0.5, 1}, {-0.75, 0.25, -0.5}}};

// Five updates with `gradients`, given as sums that `scale` turns into means.
void check_trace(const OptimizerSpec& spec, const std::array<Row, 5>& expected, double scale = 1) {
  Fixture f(spec);
  for (std::size_t step = 0; step < expected.size(); ++step) {
    Floats gradient;
    for (double g : gradients[step]) gradient.push_back(static_cast<float>(g / scale));
    const UpdateReport report =
        f.optimizer->update(f.weights, gradient, scale, spec.lr, static_cast<std::int64_t>(step));
    CHECK(report.applied);
    for (std::size_t i = 0; i < 3; ++i) {
      CAPTURE(step);
      CAPTURE(i);
      CHECK(f.weights[i] == doctest::Approx(expected[step][i]).epsilon(1e-6));
    }
  }
}

OptimizerSpec sgd(double momentum, bool nesterov, double weight_decay) {
  OptimizerSpec spec;
  spec.momentum = momentum;
  spec.nesterov = nesterov;
  spec.weight_decay = weight_decay;
  return spec;
}

OptimizerSpec adamw(double lr, double weight_decay) {
  OptimizerSpec spec;
  spec.kind = "adamw";
  spec.lr = lr;
  spec.weight_decay = weight_decay;
  return spec;
}

}  // namespace

// The traces were computed apart from this code, in double precision, in the form in which the
// usual frameworks state the updates.

TEST_CASE("five steps of plain SGD") {
  check_trace(sgd(0, false, 0), {{{0.95, -1.9, 0.475},
                                  {0.975, -1.975, 0.425},
                                  {0.875, -2.025, 0.4375},
                                  {0.8625, -1.975, 0.3375},
                                  {0.9375, -2, 0.3875}}});
}

TEST_CASE("five steps of SGD with weight decay on weights alone") {
  const std::array<Row, 5> expected = {{{0.945, -1.89, 0.475},
                                        {0.965275, -1.95555, 0.425},
                                        {0.860448625, -1.99577225, 0.4375},
                                        {0.843646382, -1.93579339, 0.3375},
                                        {0.91442815, -1.95111442, 0.3875}}};
  check_trace(sgd(0, false, 0.05), expected);
  check_trace(sgd(0, false, 0.05), expected, 1.0 / 64);
}

TEST_CASE("five steps of SGD with momentum") {
  check_trace(sgd(0.9, false, 0.05), {{{0.945, -1.89, 0.475},
                                       {0.915775, -1.85655, 0.4025},
                                       {0.784893625, -1.86716225, 0.34975},
                                       {0.650675919, -1.81737746, 0.202275},
                                       {0.601626605, -1.78848427, 0.1195475}}});
}

TEST_CASE("five steps of SGD with Nesterov momentum") {
  check_trace(sgd(0.9, true, 0.05), {{{0.8955, -1.791, 0.4525},
                                      {0.88994275, -1.8273855, 0.33725},
                                      {0.668016519, -1.87833179, 0.302275},
                                      {0.532191496, -1.77456253, 0.0695475},
                                      {0.561649231, -1.76526435, 0.04509275}}});
}

TEST_CASE("five steps of AdamW with weight decay on weights alone") {
  check_trace(adamw(0.01, 0.1), {{{0.989, -1.988, 0.49},
                                  {0.98534763, -1.98511875, 0.48034818},
                                  {0.977781166, -1.98486678, 0.474462113},
                                  {0.970813618, -1.98218721, 0.467023604},
                                  {0.968578976, -1.98056349, 0.463429051}}});
}

TEST_CASE("five steps of AdamW with other betas and epsilon, without decay") {
  OptimizerSpec spec = adamw(0.01, 0);
  spec.beta1 = 0.8;
  spec.beta2 = 0.9;
  spec.epsilon = 1e-3;
  check_trace(spec, {{{0.99001996, -1.99000999, 0.490039841},
                      {0.987883171, -1.98969374, 0.480377466},
                      {0.981157954, -1.99217031, 0.474955854},
                      {0.97518335, -1.99152756, 0.467430583},
                      {0.974865567, -1.99222326, 0.46447801}}});
}

TEST_CASE("decay_all lets biases decay too") {
  OptimizerSpec spec = sgd(0, false, 0.05);
  spec.decay_all = true;
  Fixture f(spec);
  const Floats zero(3);
  f.optimizer->update(f.weights, zero, 1, 0.1, 0);
  CHECK(f.weights[0] == doctest::Approx(0.995));
  CHECK(f.weights[2] == doctest::Approx(0.4975));
}

TEST_CASE("B26 clipping sees the mean gradient, whatever the ranks and the loss scale") {
  for (double ranks : {1.0, 2.0, 4.0}) {
    for (double loss_scale : {1.0, 1024.0}) {
      CAPTURE(ranks);
      CAPTURE(loss_scale);
      const double scale = 1 / (ranks * loss_scale);
      // What a sum over ranks of loss_scale * (0.48, 0.64) gives; exact, by powers of two.
      const Floats summed = {static_cast<float>(0.48F / scale), static_cast<float>(0.64F / scale),
                             0};
      const auto step = [&](double clip_norm) {
        OptimizerSpec spec;
        spec.clip_norm = clip_norm;
        Fixture f(spec);
        f.weights = {0, 0, 0};
        const UpdateReport report = f.optimizer->update(f.weights, summed, scale, 1, 0);
        CHECK(report.gradient_norm == doctest::Approx(0.8).epsilon(1e-7));
        return f.weights;
      };
      CHECK(step(1) == Floats{-0.48F, -0.64F, 0});
      CHECK(step(0.4) == Floats{-0.24F, -0.32F, 0});
      CHECK(step(0) == Floats{-0.48F, -0.64F, 0});
    }
  }
}

TEST_CASE("clipping by norm comes before clipping by value, and both before decay") {
  OptimizerSpec spec = sgd(0, false, 0.5);
  spec.clip_norm = 5;
  spec.clip_value = 3.5;
  Fixture f(spec);
  const Floats gradient = {6, 8, 0};  // norm 10: halved to (3, 4), then (3, 3.5)
  const UpdateReport report = f.optimizer->update(f.weights, gradient, 1, 1, 0);
  CHECK(report.gradient_norm == 10);
  CHECK(f.weights == Floats{1 - 3 - 0.5F, -2 - 3.5F + 1, 0.5F});
}

TEST_CASE("B01 the step of a linear model does not depend on how the batch is cut") {
  for (std::int64_t ranks : {1, 2, 3, 4, 7}) {
    CAPTURE(ranks);
    const BatchPlan plan(10, 10, ranks, false);
    // The gradient of mean((w x)^2) at w = 1: shard sums of 2 x^2, each over the nominal batch.
    double sum = 0;
    for (std::int64_t shard = 0; shard < ranks; ++shard) {
      const Slice slice = plan.slice(0, shard);
      for (std::int64_t i = slice.first; i < slice.first + slice.count; ++i) {
        const auto x = static_cast<double>(i + 1);
        sum += 2 * x * x / static_cast<double>(plan.global());
      }
    }
    CHECK(sum == doctest::Approx(77).epsilon(1e-12));
    const auto device = make_cpu_device(Placement{});
    const std::vector<Graph::Parameter> one = {parameter("fc/weight", 0, {1, 1}, true)};
    Floats weights = {1};
    const Floats gradient = {static_cast<float>(sum)};
    make_optimizer(OptimizerSpec{}, one, plain_layout, *device)
        ->update(weights, gradient, 1, 0.001, 0);
    CHECK(weights[0] == doctest::Approx(0.923).epsilon(1e-6));
  }
}

TEST_CASE("a gradient that is not finite changes nothing and is reported") {
  for (const char* kind : {"sgd", "adamw"}) {
    OptimizerSpec spec = sgd(0.9, false, 0.1);
    spec.kind = kind;
    spec.clip_norm = 1;
    Fixture skipped(spec);
    Fixture plain(spec);
    const Floats good = {1, 2, 3};
    for (float value :
         {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      const Floats bad = {1, value, 3};
      const Floats before = skipped.weights;
      const UpdateReport report = skipped.optimizer->update(skipped.weights, bad, 1, 0.1, 0);
      CHECK_FALSE(report.applied);
      CHECK_FALSE(std::isfinite(report.gradient_norm));
      CHECK(skipped.weights == before);
    }
    // The moments did not move either.
    for (std::int64_t update = 0; update < 2; ++update) {
      CHECK(skipped.optimizer->update(skipped.weights, good, 1, 0.1, update).applied);
      plain.optimizer->update(plain.weights, good, 1, 0.1, update);
    }
    CHECK(skipped.weights == plain.weights);
  }
}

TEST_CASE("the moments are saved under the parameters' names, and a restored optimizer goes on") {
  for (const char* kind : {"sgd", "adamw"}) {
    CAPTURE(kind);
    OptimizerSpec spec = sgd(0.9, false, 0.05);
    spec.kind = kind;
    Fixture first(spec);
    Fixture second(spec);
    const Floats gradient = {0.5F, -1, 0.25F};
    first.optimizer->update(first.weights, gradient, 1, 0.1, 0);

    NamedState from;
    NamedState to;
    first.optimizer->add_to(from);
    second.optimizer->add_to(to);
    std::vector<std::string> names;
    for (std::size_t i = 0; i < from.tensors().size(); ++i) {
      const StateTensor& tensor = from.tensors()[i];
      names.push_back(tensor.name + " " + to_string(tensor.shape));
      std::vector<std::byte> bytes(tensor.bytes());
      tensor.read(bytes);
      to.tensors()[i].write(bytes);
    }
    using Names = std::vector<std::string>;
    CHECK(names ==
          (spec.kind == "sgd"
               ? Names{"optimizer/velocity/fc/weight 1x2", "optimizer/velocity/fc/bias 1"}
               : Names{"optimizer/first_moment/fc/weight 1x2", "optimizer/first_moment/fc/bias 1",
                       "optimizer/second_moment/fc/weight 1x2",
                       "optimizer/second_moment/fc/bias 1"}));
    second.weights = first.weights;
    first.optimizer->update(first.weights, gradient, 1, 0.1, 1);
    second.optimizer->update(second.weights, gradient, 1, 0.1, 1);
    CHECK(first.weights == second.weights);
  }
}

TEST_CASE("an optimizer holds the moments that it needs") {
  CHECK(Fixture(sgd(0, false, 0)).optimizer->bytes() == 0);
  CHECK(Fixture(sgd(0.9, true, 0)).optimizer->bytes() == 12);
  CHECK(Fixture(adamw(0.1, 0)).optimizer->bytes() == 24);
  NamedState state;
  Fixture(sgd(0, false, 0)).optimizer->add_to(state);
  CHECK(state.tensors().empty());
}

TEST_CASE("a model without parameters updates nothing") {
  const auto device = make_cpu_device(Placement{});
  for (const OptimizerSpec& spec : {sgd(0.9, false, 0.1), adamw(0.1, 0.1)}) {
    const auto optimizer =
        make_optimizer(spec, std::span<const Graph::Parameter>{}, plain_layout, *device);
    const UpdateReport report = optimizer->update({}, {}, 1, 0.1, 0);
    CHECK(report.applied);
    CHECK(report.gradient_norm == 0);
  }
}

TEST_CASE("decay ranges follow the bias and norm rule and merge neighbours") {
  const std::vector<Graph::Parameter> parameters = {
      parameter("fc/weight", 0, {10, 3}, true), parameter("fc/bias", 30, {10}, false),
      parameter("bn/scale", 40, {3}, false),    parameter("bn/shift", 43, {3}, false),
      parameter("conv/weight", 46, {54}, true), parameter("stem/weight", 100, {7}, true)};
  const auto ranges = decay_ranges(parameters, 0.25, false);
  REQUIRE(ranges.size() == 3);
  const auto is = [](const DecayRange& r, std::int64_t begin, std::int64_t end, float decay) {
    return r.begin == begin && r.end == end && r.decay == decay;
  };
  CHECK(is(ranges[0], 0, 30, 0.25F));
  CHECK(is(ranges[1], 30, 46, 0));
  CHECK(is(ranges[2], 46, 107, 0.25F));
  const auto all = decay_ranges(parameters, 0.25, true);
  REQUIRE(all.size() == 1);
  CHECK(is(all[0], 0, 107, 0.25F));
  CHECK(decay_ranges(parameters, 0, false).size() == 1);
  CHECK(decay_ranges({}, 0.25, false).empty());
  const std::vector<Graph::Parameter> gap = {parameter("a", 0, {2}, true),
                                             parameter("b", 3, {2}, true)};
  CHECK_THROWS_AS(decay_ranges(gap, 0, false), Error);
}

TEST_CASE("an optimizer refuses buffers of another length and an unknown kind") {
  Fixture f{OptimizerSpec{}};
  Floats four(4);
  const Floats two(2);
  CHECK_THROWS_WITH(f.optimizer->update(four, four, 1, 0.1, 0),
                    "length of the weights: expected 3, found 4");
  CHECK_THROWS_WITH(f.optimizer->update(f.weights, two, 1, 0.1, 0),
                    "length of the gradient: expected 3, found 2");
  OptimizerSpec lamb;
  lamb.kind = "lamb";
  CHECK_THROWS_WITH(Fixture{lamb}, "optimizer.kind: unknown \"lamb\"");
}

}  // namespace annulus
