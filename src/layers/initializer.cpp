// SPDX-License-Identifier: Apache-2.0
#include "layers/initializer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/cpu/parallel.h"
#include "core/rng.h"

namespace annulus {
namespace {

const std::vector<std::string>& kinds() {
  static const std::vector<std::string> words = {"constant", "normal", "uniform", "xavier", "he"};
  return words;
}

// Which kinds each key is for.
struct KeyUse {
  const char* key;
  std::array<const char*, 2> kinds;
};
constexpr std::array<KeyUse, 5> key_uses = {{{"value", {"constant", ""}},
                                             {"std", {"normal", ""}},
                                             {"bound", {"uniform", ""}},
                                             {"fan", {"xavier", "he"}},
                                             {"distribution", {"xavier", "he"}}}};

std::string default_fan(const std::string& kind) {
  return kind == "xavier" ? "average" : "in";
}

Schema describe(InitializerSpec& spec) {
  Schema schema;
  schema.key("kind", &spec.kind, "how values are drawn").one_of(kinds()).required();
  schema.key("value", &spec.value, "of constant");
  schema.key("std", &spec.std, "deviation of normal").at_least(0);
  schema.key("bound", &spec.bound, "uniform draws from [-bound, bound)").at_least(0);
  schema.key("fan", &spec.fan, "what xavier and he scale by").one_of({"in", "out", "average"});
  schema.key("distribution", &spec.distribution, "of xavier and he").one_of({"normal", "uniform"});
  return schema;
}

void read_table(const Value& value, const std::string& name, InitializerSpec& out,
                Problems& problems) {
  const std::size_t before = problems.count();
  InitializerSpec spec;
  spec.fan.clear();
  describe(spec).fill(value, name, problems);
  if (problems.count() != before) return;
  for (const KeyUse& use : key_uses) {
    if (value.find(use.key) == nullptr) continue;
    if (spec.kind == use.kinds[0] || spec.kind == use.kinds[1]) continue;
    problems.add(value.where,
                 fmt::format("'{}' in [{}] is not for kind = \"{}\"", use.key, name, spec.kind));
  }
  if (spec.fan.empty()) spec.fan = default_fan(spec.kind);
  out = spec;
}

bool read_short(const Value& value, InitializerSpec& out) {
  InitializerSpec spec;
  if (const auto* integer = value.get<std::int64_t>()) {
    spec = InitializerSpec::constant(static_cast<double>(*integer));
  } else if (const auto* number = value.get<double>()) {
    if (!std::isfinite(*number)) return false;
    spec = InitializerSpec::constant(*number);
  } else if (const auto* kind = value.get<std::string>()) {
    if (std::find(kinds().begin(), kinds().end(), *kind) == kinds().end()) return false;
    spec.kind = *kind;
    spec.fan = default_fan(spec.kind);
  } else {
    return false;
  }
  out = spec;
  return true;
}

double fan_of(const InitializerSpec& spec, std::int64_t fan_in, std::int64_t fan_out) {
  if (spec.fan == "in") return static_cast<double>(fan_in);
  if (spec.fan == "out") return static_cast<double>(fan_out);
  return (static_cast<double>(fan_in) + static_cast<double>(fan_out)) / 2;
}

// A distribution around 0 by its half width (uniform) or its deviation (normal).
struct Spread {
  bool uniform = false;
  double size = 0;
};

Spread spread_of(const InitializerSpec& spec, std::int64_t fan_in, std::int64_t fan_out) {
  if (spec.kind == "normal") return {false, spec.std};
  if (spec.kind == "uniform") return {true, spec.bound};
  const bool xavier = spec.kind == "xavier";
  const double fan = std::max(fan_of(spec, fan_in, fan_out), 1.0);
  const double deviation = std::sqrt((xavier ? 1.0 : 2.0) / fan);
  const bool uniform = spec.distribution.empty() ? xavier : spec.distribution == "uniform";
  // A uniform distribution of half width b has deviation b / sqrt(3).
  return {uniform, uniform ? std::sqrt(3.0) * deviation : deviation};
}

}  // namespace

InitializerSpec InitializerSpec::constant(double value) {
  InitializerSpec spec;
  spec.kind = "constant";
  spec.value = value;
  return spec;
}

Key& initializer_key(Schema& schema, const std::string& name, InitializerSpec* spec,
                     const std::string& doc) {
  const std::string form =
      "number, \"normal\", \"uniform\", \"xavier\", \"he\" or a table with the key 'kind'";
  return schema.key(
      name, form,
      [=](const Value& value, Problems& problems) {
        if (value.get<Value::Table>() != nullptr) {
          read_table(value, name, *spec, problems);
        } else if (!read_short(value, *spec)) {
          problems.add(value.where,
                       fmt::format("'{}' must be {}, not {}", name, form, to_string(value)));
        }
      },
      doc);
}

void initialize(std::span<float> values, const InitializerSpec& spec, std::int64_t fan_in,
                std::int64_t fan_out, std::uint64_t seed, const std::string& name) {
  if (spec.kind == "constant") {
    std::fill(values.begin(), values.end(), static_cast<float>(spec.value));
    return;
  }
  const Spread spread = spread_of(spec, fan_in, fan_out);
  const RandomStream stream(seed, RandomUse::initialize, name);
  const auto size = static_cast<std::int64_t>(values.size());
  parallel_for(size, 4096, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto element = static_cast<std::uint64_t>(i);
      const double unit = spread.uniform ? 2.0 * stream.uniform(element, 0, 0) - 1.0
                                         : static_cast<double>(stream.normal(element, 0, 0));
      values[element] = static_cast<float>(spread.size * unit);
    }
  });
}

}  // namespace annulus
