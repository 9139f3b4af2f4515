// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "config/config.h"
#include "config/overrides.h"

namespace annulus {
namespace {

constexpr std::size_t max_points = 10'000;

struct Axis {
  std::string key;  // dotted, for the name
  std::vector<std::string> path;
  const Value::Array* values;
};

// Gathers the axes in the order of the file. A key is dotted in quotes or through sub-tables.
void add_axes(const Value& table, const std::vector<std::string>& above, std::vector<Axis>& axes,
              Problems& problems) {
  for (const Member& member : *table.get<Value::Table>()) {
    const auto parts = split_key(member.key);
    if (!parts) {
      problems.add(member.where, fmt::format("'{}' in [sweep] is not a dotted key", member.key));
      continue;
    }
    std::vector<std::string> path = above;
    path.insert(path.end(), parts->begin(), parts->end());
    if (member.value.get<Value::Table>() != nullptr) {
      add_axes(member.value, path, axes, problems);
      continue;
    }
    std::string key = join_key(path);
    const auto* values = member.value.get<Value::Array>();
    if (values == nullptr || values->empty()) {
      problems.add(member.value.where,
                   fmt::format("'{}' in [sweep] must be a list of values, not {}", key,
                               to_string(member.value)));
      continue;
    }
    if (std::any_of(axes.begin(), axes.end(), [&](const Axis& axis) { return axis.key == key; })) {
      problems.add(member.where, fmt::format("'{}' is in [sweep] twice", key));
    }
    axes.push_back({std::move(key), std::move(path), values});
  }
}

// A value as a part of the name of a run, which names a directory.
std::string name_part(const Value& value) {
  const auto* word = value.get<std::string>();
  std::string text = word != nullptr ? *word : to_string(value);
  for (char& c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (code <= 0x20 || code == 0x7F || std::string_view("/\\\"'[]{},;:*?<>|").find(c) < 99) {
      c = '_';
    }
  }
  return text;
}

// The config of one point: `index` counts with the last axis as its fastest digit.
Value point(const Value& base, const std::vector<Axis>& axes, std::size_t index,
            Problems& problems) {
  std::vector<const Value*> chosen(axes.size());
  for (std::size_t i = axes.size(); i-- > 0;) {
    chosen[i] = &(*axes[i].values)[index % axes[i].values->size()];
    index /= axes[i].values->size();
  }
  Value config = base;
  std::string suffix;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    set_at(config, axes[i].path, *chosen[i], problems);
    suffix += fmt::format("{}{}={}", suffix.empty() ? "" : ",", axes[i].key, name_part(*chosen[i]));
  }
  const Value* name = config.find("name");
  const auto* word = name == nullptr ? nullptr : name->get<std::string>();
  const Location where = name == nullptr ? config.where : name->where;
  config.set("name", {word == nullptr ? suffix : *word + "-" + suffix, where});
  return config;
}

std::size_t count_points(const std::vector<Axis>& axes, const Value& sweep, Problems& problems) {
  std::size_t count = 1;
  for (const Axis& axis : axes) {
    count *= std::min(axis.values->size(), max_points + 1);
    if (count <= max_points) continue;
    problems.add(sweep.where, fmt::format("[sweep] spans more than {} experiments", max_points));
    return 0;
  }
  return count;
}

}  // namespace

std::vector<Value> expand_sweep(const Value& config) {
  const Value* sweep = config.find("sweep");
  if (sweep == nullptr) return {config};
  Problems problems;
  std::vector<Axis> axes;
  if (sweep->get<Value::Table>() == nullptr) {
    problems.add(sweep->where,
                 fmt::format("'sweep' must be a table of lists, not {}", to_string(*sweep)));
  } else {
    add_axes(*sweep, {}, axes, problems);
  }
  problems.throw_if_any();
  Value base = config;
  std::erase_if(*base.get<Value::Table>(), [](const Member& m) { return m.key == "sweep"; });
  if (axes.empty()) return {base};
  std::vector<Value> points;
  const std::size_t count = count_points(axes, *sweep, problems);
  std::set<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    points.push_back(point(base, axes, i, problems));
    const auto* name = points.back().find("name")->get<std::string>();
    if (!names.insert(*name).second) {
      problems.add(
          sweep->where,
          fmt::format("two experiments of [sweep] have the name \"{}\"; values that differ "
                      "only in what no name of a directory can hold must be told apart",
                      *name));
    }
  }
  problems.throw_if_any();
  return points;
}

}  // namespace annulus
