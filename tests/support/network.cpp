// SPDX-License-Identifier: Apache-2.0
#include "support/network.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "config/config.h"
#include "core/rng.h"

namespace annulus {

ModelSpec read_model(const std::string& toml, Problems& problems) {
  Value config = parse_config(toml, "model.toml");
  expand_blocks(config, problems);
  ModelSpec spec;
  Schema schema;
  schema.table("model", describe(spec), "");
  schema.table("loss", describe(spec.loss), "");
  schema.fill(config, "", problems);
  return spec;
}

Graph make_graph(const std::string& toml) {
  Problems problems;
  ModelSpec spec = read_model(toml, problems);
  problems.throw_if_any();
  Graph graph(std::move(spec), problems);
  problems.throw_if_any();
  return graph;
}

std::string problems_of(const std::string& toml) {
  try {
    make_graph(toml);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

Floats random_numbers(std::size_t count, const std::string& name) {
  const RandomStream stream(7, RandomUse::synthetic, name);
  Floats numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = 2 * stream.uniform(i, 0, 0) - 1;
  return numbers;
}

double relative_difference(const Floats& a, const Floats& b) {
  double size = 1e-30;
  double difference = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    size = std::max<double>(size, std::abs(b[i]));
    const double d = std::abs(static_cast<double>(a[i]) - b[i]);
    difference = std::isnan(d) ? INFINITY : std::max(difference, d);
  }
  return difference / size;
}

Network::Network(const Graph& model, Backend& backend, std::int64_t batch, Mode mode,
                 MemoryMode memory)
    : graph(model),
      executor(model, backend, batch, mode, 1, memory),
      arena(Buffer::host(executor.arena_bytes())),
      weights(static_cast<std::size_t>(model.flat_elements())),
      statistics(static_cast<std::size_t>(model.statistic_elements())),
      gradients(weights.size()),
      batch_sums(statistics.size(), NAN) {
  graph.initialize(weights, statistics, 3);
  // What nobody writes shows; between parameters lie zeros.
  for (const Graph::Parameter& p : graph.parameters()) {
    std::fill_n(gradients.begin() + p.offset, p.elements, NAN);
  }
  executor.bind(arena.as<std::byte>());
  for (const ModelInput& input : graph.inputs()) {
    const std::int64_t count = input.shape.with_batch(batch).elements();
    inputs.push_back(random_numbers(static_cast<std::size_t>(count), input.name));
  }
  for (const auto& input : inputs) input_pointers_.push_back(input.data());
  for (std::int64_t n = 0; n < batch; ++n) {
    labels.push_back(static_cast<std::int32_t>(n % std::max<std::int64_t>(graph.classes(), 1)));
    samples.push_back(100 + n);
  }
  const Shape& output = graph.values()[static_cast<std::size_t>(graph.output())].shape;
  targets = random_numbers(static_cast<std::size_t>(output.with_batch(batch).elements()), "target");
  context = {5, samples, 1};
}

FlatBuffers Network::buffers() {
  return {weights.data(), statistics.data(), gradients.data(), batch_sums.data()};
}

LossSums Network::forward(double scale) {
  executor.forward(input_pointers_, buffers(), context);
  const bool classes = graph.loss().kind == "cross_entropy";
  const void* wanted =
      classes ? static_cast<const void*>(labels.data()) : static_cast<const void*>(targets.data());
  return executor.loss(wanted, scale);
}

void Network::backward() {
  executor.backward(input_pointers_, buffers(), context,
                    [this](int parameter) { ready.push_back(parameter); });
}

Floats Network::prediction() const {
  const float* first = executor.prediction();
  return {first, first + targets.size()};
}

}  // namespace annulus
