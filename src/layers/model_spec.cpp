// SPDX-License-Identifier: Apache-2.0
#include "layers/model_spec.h"

#include <algorithm>
#include <map>

namespace annulus {
namespace {

const LayerKind* find_kind(std::string_view key) {
  for (const LayerKind& kind : layer_kinds()) {
    if (kind.key == key) return &kind;
  }
  return nullptr;
}

bool has_key(const Schema& schema, std::string_view name) {
  const auto& keys = schema.keys();
  return std::any_of(keys.begin(), keys.end(), [&](const Key& key) { return key.name() == name; });
}

// Letters, digits, '_', '.' and '-': a name is part of "layer/weight" in checkpoints.
bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  });
}

void check_name(const std::string& name, const Location& where, Problems& problems) {
  if (is_name(name)) return;
  problems.add(where, fmt::format("'name' must be letters, digits, '_', '.' and '-', not {}",
                                  to_string(Value{name, {}})));
}

std::string kinds_near(const Value::Table& table) {
  std::vector<std::string> known;
  for (const LayerKind& kind : layer_kinds()) known.push_back(kind.key);
  for (const Member& member : table) {
    const std::string guess = nearest(member.key, known);
    if (!guess.empty()) return fmt::format("'{}': did you mean '{}'?", member.key, guess);
  }
  std::string text = "one of its keys must be";
  for (const std::string& key : known) text += (&key == &known[0] ? " '" : ", '") + key + "'";
  return text;
}

// The kind of layer that a table describes: the one of its keys that is a kind and whose own keys
// take the others in (`relu` beside `batch_norm`). Null, with a problem, where there is none.
const LayerKind* kind_of(const Value& value, const Value::Table& table, Problems& problems) {
  std::vector<const LayerKind*> found;
  for (const Member& member : table) {
    if (const LayerKind* kind = find_kind(member.key)) found.push_back(kind);
  }
  for (const LayerKind* kind : found) {
    const auto layer = kind->make();
    const Schema schema = layer->describe();
    const auto fits = [&](const LayerKind* other) { return has_key(schema, other->key); };
    if (std::all_of(found.begin(), found.end(), fits)) return kind;
  }
  if (found.empty()) {
    problems.add(value.where, "a layer without a kind: " + kinds_near(table));
  } else {
    problems.add(value.where, fmt::format("a layer of two kinds, '{}' and '{}': give each a table",
                                          found[0]->key, found[1]->key));
  }
  return nullptr;
}

// Puts the names that the layer's own keys give after those of `from`.
void join_references(LayerSpec& spec, Problems& problems) {
  const std::vector<std::string> names = spec.layer->references();
  const bool joins = spec.kind == "add" || spec.kind == "concat";
  if (joins && !spec.from.empty()) {
    problems.add(spec.where, fmt::format("'from' and '{}' both name the inputs of layer {}: leave "
                                         "'from' out",
                                         spec.kind, spec.name));
    return;
  }
  if (!joins && spec.from.empty()) spec.from.emplace_back();
  spec.from.insert(spec.from.end(), names.begin(), names.end());
}

void read_layer(const Value& value, std::map<std::string, int>& numbers, ModelSpec& model,
                Problems& problems) {
  const auto* table = value.get<Value::Table>();
  if (table == nullptr) {
    problems.add(value.where, fmt::format("a layer must be a table, not {}", to_string(value)));
    return;
  }
  const LayerKind* kind = kind_of(value, *table, problems);
  if (kind == nullptr) return;

  LayerSpec spec;
  spec.kind = kind->key;
  // Counted for named layers too: giving one layer a name renames no other.
  spec.name = fmt::format("{}{}", spec.kind, ++numbers[spec.kind]);
  spec.layer = kind->make();
  spec.where = value.where;
  const Schema schema = describe(spec);
  const Value* name = value.find("name");
  const auto* given = name == nullptr ? nullptr : name->get<std::string>();
  const std::size_t before = problems.count();
  schema.fill(value, fmt::format("model.layers, {}", given ? *given : spec.name), problems);
  if (problems.count() == before) spec.layer->check(spec.where, problems);
  join_references(spec, problems);
  model.layers.push_back(std::move(spec));
}

void read_layers(const Value& value, ModelSpec& model, Problems& problems) {
  const auto* list = value.get<Value::Array>();
  if (list == nullptr || list->empty()) {
    problems.add(value.where, fmt::format("'layers' must be a list of tables, one a layer, not {}",
                                          to_string(value)));
    return;
  }
  std::map<std::string, int> numbers;
  model.layers.clear();
  for (const Value& layer : *list) read_layer(layer, numbers, model, problems);
}

void read_input(const Value& value, const std::string& name, ModelSpec& model, Problems& problems) {
  const auto* list = value.get<Value::Array>();
  const bool right_rank = list != nullptr && (list->size() == 1 || list->size() == 3);
  std::vector<std::int64_t> extents;
  for (const Value& item : right_rank ? *list : Value::Array{}) {
    const auto* extent = item.get<std::int64_t>();
    if (extent != nullptr && *extent >= 1 && *extent <= 2147483647) extents.push_back(*extent);
  }
  if (!right_rank || extents.size() != list->size()) {
    problems.add(value.where, fmt::format("'{}' must be [channels, height, width] or [features], "
                                          "each from 1 to 2147483647, not {}",
                                          name, to_string(value)));
    return;
  }
  model.inputs.push_back({name, Shape(extents)});
}

void read_inputs(const Value& value, ModelSpec& model, Problems& problems) {
  model.inputs.clear();
  const auto* table = value.get<Value::Table>();
  if (table == nullptr) return read_input(value, "input", model, problems);
  if (table->empty()) problems.add(value.where, "'input' has no entry");
  for (const Member& member : *table) {
    check_name(member.key, member.where, problems);
    read_input(member.value, member.key, model, problems);
  }
}

void read_from(const Value& value, std::vector<std::string>& from, Problems& problems) {
  std::vector<std::string> names;
  const auto* list = value.get<Value::Array>();
  const Value::Array one = {value};
  for (const Value& item : list != nullptr ? *list : one) {
    const auto* name = item.get<std::string>();
    if (name != nullptr && !name->empty()) names.push_back(*name);
  }
  if (names.empty() || names.size() != (list != nullptr ? list->size() : 1)) {
    problems.add(value.where, fmt::format("'from' must be the name of a layer or a list of names, "
                                          "not {}",
                                          to_string(value)));
    return;
  }
  from = std::move(names);
}

void read_top_k(const Value& value, std::vector<std::int64_t>& top_k, Problems& problems) {
  const auto* list = value.get<Value::Array>();
  std::vector<std::int64_t> read;
  for (const Value& item : list != nullptr ? *list : Value::Array{}) {
    const auto* k = item.get<std::int64_t>();
    if (k != nullptr && *k >= 1) read.push_back(*k);
  }
  if (list == nullptr || read.size() != list->size() || read.empty() || read.size() > 2) {
    problems.add(value.where,
                 fmt::format("'top_k' must be one or two integers >= 1, not {}", to_string(value)));
    return;
  }
  top_k = std::move(read);
}

}  // namespace

Schema describe(LayerSpec& spec) {
  Schema schema = spec.layer ? spec.layer->describe() : Schema();
  schema.key(
      "name", "letters, digits, '_', '.', '-'",
      [&spec](const Value& value, Problems& problems) {
        const auto* name = value.get<std::string>();
        spec.name = name != nullptr ? *name : "";
        check_name(spec.name, value.where, problems);
      },
      "unique name of the layer; default: its kind and its number among those of its kind");
  schema.key(
      "from", "name or list of names",
      [&spec](const Value& value, Problems& problems) { read_from(value, spec.from, problems); },
      "the layers or inputs that it reads; default: the layer before");
  schema.key("share", &spec.share, "name of an earlier layer whose parameters this one uses too");
  return schema;
}

Schema describe(ModelSpec& spec) {
  Schema schema;
  schema
      .key(
          "input", "[channels, height, width], [features], or a table of such lists by name",
          [&spec](const Value& value, Problems& problems) { read_inputs(value, spec, problems); },
          "shape of one sample")
      .required();
  schema.key("classes", &spec.classes, "number of classes; default: the size of the output")
      .at_least(1)
      .at_most(2147483647);
  schema
      .key(
          "layers", "list of tables",
          [&spec](const Value& value, Problems& problems) { read_layers(value, spec, problems); },
          "the layers, in order")
      .required();
  return schema;
}

Schema describe(LossSpec& spec) {
  Schema schema;
  schema.key("kind", &spec.kind, "what is minimised")
      .one_of({"cross_entropy", "mean_squared_error"});
  schema
      .key("label_smoothing", &spec.label_smoothing,
           "share of the target that all classes get alike (cross_entropy)")
      .at_least(0)
      .below(1);
  schema.key(
      "ignore_index", "integer",
      [&spec](const Value& value, Problems& problems) {
        const auto* index = value.get<std::int64_t>();
        if (index != nullptr) {
          spec.ignore_index = *index;
        } else {
          problems.add(value.where,
                       fmt::format("'ignore_index' must be integer, not {}", to_string(value)));
        }
      },
      "label of samples that are left out of the loss (cross_entropy)");
  schema.key(
      "top_k", "one or two integers >= 1",
      [&spec](const Value& value, Problems& problems) { read_top_k(value, spec.top_k, problems); },
      "k of the reported top-k accuracies (cross_entropy); default [1, 5]");
  return schema;
}

}  // namespace annulus
