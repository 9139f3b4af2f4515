// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "config/block_definition.h"
#include "config/config.h"
#include "config/expression.h"
#include "core/schema.h"

namespace annulus {
namespace {

constexpr std::int64_t max_layers = 100'000;

// One list of layers that is being written out: the model's own, or one repetition of a block.
struct Level {
  const Level* outer = nullptr;
  std::string prefix;                          // of the names of its layers: "stage1.0."
  std::string input;                           // what "input" means in a block
  const Value* parameters = nullptr;           // null: the model's own list
  std::map<std::string, std::string> outputs;  // local name -> layer that gives its output
  std::set<std::string> uses;                  // those names that are uses of blocks
  std::map<std::string, int> counts;           // layers and uses so far, by kind
};

template <class T>
bool contains(const T& list, std::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

// By convention the kind of a layer is its first key.
std::string kind_of(const Value& layer) {
  static constexpr std::string_view general[] = {"name", "from", "when", "share"};
  for (const Member& member : *layer.get<Value::Table>()) {
    if (!contains(general, member.key)) return member.key;
  }
  return "layer";
}

// Whether a layer names all that it reads: by `from`, or by a list to join. (`add = "x"` beside a
// kind comes on top of what the layer reads.)
bool names_inputs(const Value& layer) {
  const auto is_list = [&](std::string_view key) {
    const Value* value = layer.find(key);
    return value != nullptr && value->get<Value::Array>() != nullptr;
  };
  return layer.find("from") != nullptr || is_list("add") || is_list("concat");
}

void erase(Value& table, std::string_view key) {
  std::erase_if(*table.get<Value::Table>(), [&](const Member& m) { return m.key == key; });
}

// What a name means at a level: the output of a layer written out before, or the name itself.
std::string resolve(const Level& level, const std::string& name) {
  for (const Level* at = &level; at != nullptr; at = at->outer) {
    if (at->outer != nullptr && name == "input") return at->input;
    if (const auto found = at->outputs.find(name); found != at->outputs.end()) {
      return found->second;
    }
    // "stage1.0.conv1" names a layer inside a use of this level.
    if (at->uses.count(name.substr(0, name.find('.'))) > 0) return at->prefix + name;
  }
  return name;
}

class Expander {
 public:
  Expander(std::span<const BlockDefinition> blocks, std::string input, Problems& problems)
      : blocks_(blocks), problems_(problems), last_(std::move(input)) {}

  Value::Array run(const Value::Array& layers) {
    Level top;
    expand_list(top, layers, last_);
    return std::move(result_);
  }

  bool used(const BlockDefinition& block) const { return used_.count(&block) > 0; }

 private:
  // Appends the layers of a list whose first one reads `current`; returns what the last one gives.
  std::string expand_list(Level& level, const Value::Array& layers, std::string current) {
    for (const Value& layer : layers) {
      if (!may_go_on(layer.where)) break;
      current = expand_layer(level, layer, current);
    }
    return current;
  }

  bool may_go_on(const Location& where) {
    if (++visited_ == max_layers + 1) {
      problems_.add(where, fmt::format("the blocks give more than {} layers", max_layers));
    }
    return visited_ <= max_layers;
  }

  std::string expand_layer(Level& level, const Value& written, const std::string& current) {
    if (written.get<Value::Table>() == nullptr) {
      problems_.add(written.where,
                    fmt::format("a layer must be a table, not {}", to_string(written)));
      return current;
    }
    const bool skipped = !condition(level, written);
    Value layer = written;
    erase(layer, "when");
    if (skipped) keep_only_links(layer);
    substitute(level, layer);
    const bool use = written.find("block") != nullptr;
    const std::string name = local_name(level, layer, written, use);
    std::string output;
    if (skipped) {
      output = single_input(level, layer, current, "a layer that is left out");
    } else if (use) {
      output = expand_use(level, layer, name, current);
    } else {
      output = append(level, std::move(layer), name, current);
    }
    add_name(level, name, written, output);
    if (use) level.uses.insert(name);
    return output;
  }

  bool condition(const Level& level, const Value& layer) {
    const Value* written = layer.find("when");
    if (written == nullptr) return true;
    Value value = *written;
    if (!substitute(level, value)) return true;
    if (const auto* flag = value.get<bool>()) return *flag;
    problems_.add(value.where,
                  fmt::format("'when' must be true or false, not {}", to_string(value)));
    return true;
  }

  // The rest of a layer that is left out may be without a meaning.
  static void keep_only_links(Value& layer) {
    std::erase_if(*layer.get<Value::Table>(),
                  [](const Member& m) { return m.key != "name" && m.key != "from"; });
  }

  // Computes all expressions in a value; false, with problems, where one has no value.
  bool substitute(const Level& level, Value& value) {
    bool good = true;
    if (auto* table = value.get<Value::Table>()) {
      for (Member& member : *table) good = substitute(level, member.value) && good;
    } else if (auto* array = value.get<Value::Array>()) {
      for (Value& item : *array) good = substitute(level, item) && good;
    } else if (const auto* text = value.get<std::string>(); text && is_expression(*text)) {
      return compute(level, value, *text);
    }
    return good;
  }
  bool compute(const Level& level, Value& value, const std::string& text) {
    if (level.parameters == nullptr) {
      problems_.add(value.where, fmt::format("\"{}\" stands outside of a block: only blocks have "
                                             "parameters",
                                             text));
      return false;
    }
    try {
      value = evaluate(text, *level.parameters, value.where);
      return true;
    } catch (const Error& error) {
      problems_.add(error.where(), error.message());
      return false;
    }
  }

  // The name that the file gives, or the kind (or the block) and its number among those of its kind
  // in this list. Named layers and those that are left out count too: names depend neither on other
  // names nor on parameters.
  std::string local_name(Level& level, const Value& layer, const Value& written, bool use) {
    const auto* block = use ? written.find("block")->get<std::string>() : nullptr;
    const std::string kind = block != nullptr ? *block : kind_of(written);
    std::string name = kind + std::to_string(++level.counts[kind]);
    if (const Value* given = layer.find("name")) {
      const auto* word = given->get<std::string>();
      if (word != nullptr && !word->empty()) return *word;
      problems_.add(given->where, fmt::format("'name' must be a text, not {}", to_string(*given)));
    }
    return name;
  }

  void add_name(Level& level, const std::string& name, const Value& layer,
                const std::string& output) {
    const Value* given = layer.find("name");
    const Location& where = given == nullptr ? layer.where : given->where;
    if (level.outer != nullptr && name == "input") {
      problems_.add(where, "in a block 'input' is the block's input; a layer needs another name");
    }
    if (!level.outputs.emplace(name, output).second) {
      problems_.add(where, fmt::format("two layers are named '{}' here", name));
    }
  }

  // The one input of something that takes only one.
  std::string single_input(const Level& level, const Value& layer, const std::string& current,
                           std::string_view what) {
    const Value* from = layer.find("from");
    if (from == nullptr) return current;
    const auto* list = from->get<Value::Array>();
    const Value& only = list != nullptr && list->size() == 1 ? list->front() : *from;
    if (const auto* name = only.get<std::string>()) return resolve(level, *name);
    problems_.add(from->where, fmt::format("{} has one input: 'from' must be one name, not {}",
                                           what, to_string(*from)));
    return current;
  }

  std::string append(const Level& level, Value layer, const std::string& name,
                     const std::string& current) {
    for (const std::string_view key : reference_keys) {
      if (Value* value = layer.find(key)) resolve_references(level, *value);
    }
    const std::string full = level.prefix + name;
    Value* given = layer.find("name");
    layer.set("name", {full, given == nullptr ? layer.where : given->where});
    if (current != last_ && !names_inputs(layer)) {
      layer.set("from", {current, layer.where});
    }
    result_.push_back(std::move(layer));
    return last_ = full;
  }

  static void resolve_references(const Level& level, Value& value) {
    if (auto* name = value.get<std::string>()) *name = resolve(level, *name);
    if (auto* list = value.get<Value::Array>()) {
      for (Value& item : *list) resolve_references(level, item);
    }
  }

  std::string expand_use(const Level& level, const Value& use, const std::string& name,
                         const std::string& current) {
    std::string input = single_input(level, use, current, "a block");
    const BlockDefinition* block = find_block(blocks_, *use.find("block"), problems_);
    if (block == nullptr) return input;
    used_.insert(block);
    const std::int64_t repeat = repetitions(use);
    const std::optional<Value> common = bind(*block, use, nullptr);
    const Value* first = use.find("first");
    const std::optional<Value> leading = first == nullptr ? common : bind(*block, use, first);
    if (block->layers == nullptr || !common || !leading) return input;
    for (std::int64_t i = 0; i < repeat && visited_ <= max_layers; ++i) {
      Level inner;
      inner.outer = &level;
      inner.prefix = level.prefix + name + ".";
      if (use.find("repeat") != nullptr) inner.prefix += std::to_string(i) + ".";
      inner.input = input;
      inner.parameters = i == 0 ? &*leading : &*common;
      input = expand_list(inner, *block->layers, input);
    }
    return input;
  }

  std::int64_t repetitions(const Value& use) {
    const Value* value = use.find("repeat");
    if (value == nullptr) return 1;
    const auto* count = value->get<std::int64_t>();
    if (count != nullptr && *count >= 1 && *count <= max_layers) return *count;
    problems_.add(value->where, fmt::format("'repeat' must be integer >= 1 and <= {}, not {}",
                                            max_layers, to_string(*value)));
    return 1;
  }

  // The parameters of one use: what `first` gives, else what the use gives, else the defaults.
  std::optional<Value> bind(const BlockDefinition& block, const Value& use, const Value* first) {
    static constexpr std::string_view own[] = {"block", "name", "repeat", "first", "from"};
    Value bound{Value::Table{}, use.where};
    bool good = true;
    for (const Member& member : *use.get<Value::Table>()) {
      if (contains(own, member.key)) continue;
      good = bind_one(block, member, bound) && good;
    }
    if (first != nullptr && first->get<Value::Table>() == nullptr) {
      problems_.add(first->where, fmt::format("'first' must be a table of parameters, not {}",
                                              to_string(*first)));
      return std::nullopt;
    }
    if (first != nullptr) {
      for (const Member& member : *first->get<Value::Table>()) {
        good = bind_one(block, member, bound) && good;
      }
    }
    return good && complete(block, use, bound) ? std::optional(std::move(bound)) : std::nullopt;
  }

  bool bind_one(const BlockDefinition& block, const Member& member, Value& bound) {
    if (block.has_parameter(member.key)) {
      bound.set(member.key, member.value);
      return true;
    }
    const std::string guess = nearest(member.key, block.parameter_names());
    problems_.add(member.where,
                  fmt::format("block '{}' has no parameter '{}'{}", block.name, member.key,
                              guess.empty() ? "" : "; did you mean '" + guess + "'?"));
    return false;
  }

  // Adds the defaults, which may use parameters that are given or stand before them.
  bool complete(const BlockDefinition& block, const Value& use, Value& bound) {
    bool good = true;
    for (const std::string& name : block.required) {
      if (bound.find(name) != nullptr) continue;
      good = false;
      problems_.add(use.where,
                    fmt::format("block '{}' needs the parameter '{}'", block.name, name));
    }
    Level level;
    level.parameters = &bound;
    for (const Member& member : block.defaults) {
      if (!good || bound.find(member.key) != nullptr) continue;
      Value value = member.value;
      good = substitute(level, value);
      bound.set(member.key, std::move(value));
    }
    return good;
  }

  std::span<const BlockDefinition> blocks_;
  Problems& problems_;
  std::string last_;  // the layer appended last: what one without `from` reads
  Value::Array result_;
  std::set<const BlockDefinition*> used_;
  std::int64_t visited_ = 0;
};

bool uses_blocks(const Value::Array& layers) {
  return std::any_of(layers.begin(), layers.end(), [](const Value& layer) {
    return layer.find("block") != nullptr || layer.find("when") != nullptr;
  });
}

// The input that the first layer of a chain reads: the first of a model with several.
std::string first_input(const Value& model) {
  const Value* input = model.find("input");
  const auto* inputs = input == nullptr ? nullptr : input->get<Value::Table>();
  return inputs == nullptr || inputs->empty() ? "input" : inputs->front().key;
}

}  // namespace

void expand_blocks(Value& config, Problems& problems) {
  Value* model = config.find("model");
  if (model == nullptr || model->get<Value::Table>() == nullptr) return;
  const Value* written = model->find("blocks");
  Value* layers = model->find("layers");
  auto* list = layers == nullptr ? nullptr : layers->get<Value::Array>();
  const bool needed = written != nullptr || (list != nullptr && uses_blocks(*list));
  if (!needed) return;
  const Value blocks = written == nullptr ? Value{} : *written;
  const std::vector<BlockDefinition> definitions = read_blocks(blocks, problems);
  if (list != nullptr) {
    Expander expander(definitions, first_input(*model), problems);
    *list = expander.run(*list);
    for (const BlockDefinition& block : definitions) {
      if (!expander.used(block)) {
        problems.warn(block.where, fmt::format("block '{}' is not used", block.name));
      }
    }
  }
  erase(*model, "blocks");
}

}  // namespace annulus
