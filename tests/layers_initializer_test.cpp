// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "core/cpu/parallel.h"
#include "layers/initializer.h"
#include "support/network.h"

namespace annulus {
namespace {

std::vector<float> draw(const InitializerSpec& spec, std::size_t count = 20000,
                        const std::string& name = "conv1/weight", std::uint64_t seed = 1) {
  std::vector<float> values(count);
  initialize(values, spec, 50, 150, seed, name);
  return values;
}

InitializerSpec of_kind(const std::string& kind, const std::string& fan) {
  InitializerSpec spec;
  spec.kind = kind;
  spec.fan = fan;
  return spec;
}

struct Moments {
  double mean = 0;
  double deviation = 0;
  double largest = 0;
};

Moments moments(const std::vector<float>& values) {
  Moments m;
  for (float v : values) {
    m.mean += v;
    m.deviation += static_cast<double>(v) * v;
    m.largest = std::max<double>(m.largest, std::abs(v));
  }
  m.mean /= static_cast<double>(values.size());
  m.deviation = std::sqrt(m.deviation / static_cast<double>(values.size()) - m.mean * m.mean);
  return m;
}

// 20,000 draws: a mean is within 4 standard errors, a deviation within 3 %.
void check_moments(const Moments& m, double deviation) {
  CHECK(std::abs(m.mean) < 4 * deviation / std::sqrt(20000.0));
  CHECK(m.deviation == doctest::Approx(deviation).epsilon(0.03));
}

}  // namespace

TEST_CASE("constant, normal and uniform starts") {
  CHECK(draw(InitializerSpec::constant(0.25), 3) == std::vector<float>{0.25F, 0.25F, 0.25F});
  InitializerSpec normal = of_kind("normal", "in");
  normal.std = 0.3;
  const Moments n = moments(draw(normal));
  check_moments(n, 0.3);
  CHECK(n.largest > 0.9);  // a normal has tails
  InitializerSpec uniform = of_kind("uniform", "in");
  uniform.bound = 0.3;
  const Moments u = moments(draw(uniform));
  check_moments(u, 0.3 / std::sqrt(3.0));
  CHECK(u.largest <= 0.3F);
  CHECK(u.largest > 0.299);
}

TEST_CASE("He and Xavier scale by the fan they are told") {
  check_moments(moments(draw(of_kind("he", "in"))), std::sqrt(2.0 / 50));
  check_moments(moments(draw(of_kind("he", "out"))), std::sqrt(2.0 / 150));
  check_moments(moments(draw(of_kind("he", "average"))), std::sqrt(2.0 / 100));
  const Moments xavier = moments(draw(of_kind("xavier", "average")));
  check_moments(xavier, std::sqrt(1.0 / 100));
  CHECK(xavier.largest <= doctest::Approx(std::sqrt(3.0 / 100)));
  InitializerSpec uniform = of_kind("he", "in");
  uniform.distribution = "uniform";
  const Moments he = moments(draw(uniform));
  check_moments(he, std::sqrt(2.0 / 50));
  CHECK(he.largest <= doctest::Approx(std::sqrt(6.0 / 50)));
}

TEST_CASE("a start is a function of seed, name and element alone") {
  const std::vector<float> all = draw(of_kind("he", "in"));
  const std::vector<float> few = draw(of_kind("he", "in"), 10);
  CHECK(std::equal(few.begin(), few.end(), all.begin()));
  CHECK(draw(of_kind("he", "in"), 10, "conv2/weight") != few);
  CHECK(draw(of_kind("he", "in"), 10, "conv1/weight", 2) != few);
  const int threads = parallel_threads();
  set_parallel_threads(3);
  CHECK(draw(of_kind("he", "in")) == all);
  set_parallel_threads(threads);
}

TEST_CASE("a graph's start: fans of a grouped convolution, norms at 1 and 0, zero gamma") {
  const Graph graph = make_graph(
      "[model]\ninput = [32, 4, 4]\nlayers = [ { conv = 64, kernel = 3, groups = 2, bias_init = "
      "0.5 }, { batch_norm = true, init = 0 }, { linear = 2, weight_init = { kind = \"xavier\", "
      "distribution = \"normal\" } } ]\n");
  const auto& parameters = graph.parameters();
  std::vector<float> weights(static_cast<std::size_t>(graph.flat_elements()), NAN);
  std::vector<float> statistics(static_cast<std::size_t>(graph.statistic_elements()), NAN);
  graph.initialize(weights, statistics, 1);
  const auto part = [&](std::size_t p) {
    const auto begin = weights.begin() + parameters[p].offset;
    return std::vector<float>(begin, begin + parameters[p].elements);
  };
  CHECK(parameters[4].spec.fan_in == 16 * 9);
  CHECK(parameters[4].spec.fan_out == 32 * 9);
  CHECK(moments(part(4)).deviation == doctest::Approx(std::sqrt(2.0 / 144)).epsilon(0.05));
  CHECK(part(5) == std::vector<float>(64, 0.5F));
  CHECK(part(2) == std::vector<float>(64, 0.0F));
  CHECK(part(3) == std::vector<float>(64, 0.0F));
  CHECK(part(1) == std::vector<float>(2, 0.0F));
  CHECK(parameters[0].spec.initializer.fan == "average");
  CHECK(std::vector<float>(statistics.begin(), statistics.begin() + 64) ==
        std::vector<float>(64, 0.0F));
  CHECK(std::vector<float>(statistics.begin() + 64, statistics.end()) ==
        std::vector<float>(64, 1.0F));
}

}  // namespace annulus
