// SPDX-License-Identifier: Apache-2.0
#include "config/block_definition.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "core/schema.h"

namespace annulus {
namespace {

// Words with a meaning of their own where a block is used.
constexpr std::string_view reserved[] = {"block", "name",   "repeat", "first", "when",
                                         "from",  "concat", "add",    "share"};

bool is_name(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

// Whether a parameter may have that name; adds a problem where it may not.
bool good_name(const BlockDefinition& block, const std::string& name, const Location& where,
               Problems& problems) {
  if (std::find(std::begin(reserved), std::end(reserved), name) != std::end(reserved)) {
    problems.add(where, fmt::format("'{}' has a meaning of its own where a block is used; a "
                                    "parameter needs another name",
                                    name));
  } else if (!is_name(name)) {
    problems.add(where,
                 fmt::format("the name of a parameter is letters, digits and '_', not '{}'", name));
  } else if (block.has_parameter(name)) {
    problems.add(where, fmt::format("block '{}' has the parameter '{}' twice", block.name, name));
  } else {
    return true;
  }
  return false;
}

void read_required(BlockDefinition& block, const Value& list, Problems& problems) {
  const auto* names = list.get<Value::Array>();
  if (names == nullptr) {
    problems.add(list.where,
                 fmt::format("'required' must be list of strings, not {}", to_string(list)));
    return;
  }
  for (const Value& item : *names) {
    const auto* name = item.get<std::string>();
    if (name == nullptr) {
      problems.add(item.where,
                   fmt::format("'required' must be list of strings, not {}", to_string(list)));
    } else if (good_name(block, *name, item.where, problems)) {
      block.required.push_back(*name);
    }
  }
}

void read_defaults(BlockDefinition& block, const Value& table, Problems& problems) {
  const auto* members = table.get<Value::Table>();
  if (members == nullptr) {
    problems.add(table.where, fmt::format("'parameters' must be a table of names and defaults, not "
                                          "{}",
                                          to_string(table)));
    return;
  }
  for (const Member& member : *members) {
    if (good_name(block, member.key, member.where, problems)) block.defaults.push_back(member);
  }
}

void read_layers(BlockDefinition& block, const Value& list, Problems& problems) {
  block.layers = list.get<Value::Array>();
  if (block.layers == nullptr || block.layers->empty()) {
    problems.add(list.where, fmt::format("'layers' of block '{}' must be a list of layers, not {}",
                                         block.name, to_string(list)));
  }
}

BlockDefinition read_block(const Member& member, Problems& problems) {
  BlockDefinition block{member.key, member.where, {}, {}, nullptr};
  const auto* table = member.value.get<Value::Table>();
  if (table == nullptr) {
    problems.add(member.value.where, fmt::format("block '{}' must be a table, not {}", member.key,
                                                 to_string(member.value)));
    return block;
  }
  for (const Member& key : *table) {
    if (key.key == "required") {
      read_required(block, key.value, problems);
    } else if (key.key == "parameters") {
      read_defaults(block, key.value, problems);
    } else if (key.key == "layers") {
      read_layers(block, key.value, problems);
    } else {
      const std::string guess = nearest(key.key, {"parameters", "required", "layers"});
      problems.add(key.where,
                   fmt::format("unknown key '{}' in [model.blocks.{}]{}", key.key, member.key,
                               guess.empty() ? "" : "; did you mean '" + guess + "'?"));
    }
  }
  if (member.value.find("layers") == nullptr) {
    problems.add(member.where, fmt::format("block '{}' has no 'layers'", member.key));
  }
  return block;
}

// Follows the uses inside of blocks, each block once. `path_` holds the blocks on the way here.
class CycleSearch {
 public:
  CycleSearch(std::span<const BlockDefinition> blocks, Problems& problems)
      : blocks_(blocks), problems_(problems) {}

  // Whether a block contains itself or one that does; adds a problem where a circle closes.
  bool in_cycle(const BlockDefinition& block) {
    if (const auto known = known_.find(&block); known != known_.end()) return known->second;
    path_.push_back(&block);
    bool found = false;
    if (block.layers != nullptr) {
      for (const Value& layer : *block.layers) found = follow(layer) || found;
    }
    path_.pop_back();
    return known_[&block] = found;
  }

 private:
  bool follow(const Value& layer) {
    const Value* name = layer.find("block");
    const auto* word = name == nullptr ? nullptr : name->get<std::string>();
    const auto inner = std::find_if(blocks_.begin(), blocks_.end(), [&](const auto& block) {
      return word != nullptr && block.name == *word;
    });
    if (inner == blocks_.end()) return false;
    const auto open = std::find(path_.begin(), path_.end(), &*inner);
    if (open == path_.end()) return in_cycle(*inner);
    std::string chain;
    for (auto block = open; block != path_.end(); ++block) chain += (*block)->name + " -> ";
    problems_.add(name->where,
                  fmt::format("block '{0}' contains itself: {1}{0}", inner->name, chain));
    return true;
  }

  std::span<const BlockDefinition> blocks_;
  Problems& problems_;
  std::vector<const BlockDefinition*> path_;
  std::map<const BlockDefinition*, bool> known_;
};

}  // namespace

bool BlockDefinition::has_parameter(std::string_view key) const {
  const std::vector<std::string> names = parameter_names();
  return std::find(names.begin(), names.end(), key) != names.end();
}

std::vector<std::string> BlockDefinition::parameter_names() const {
  std::vector<std::string> names = required;
  for (const Member& member : defaults) names.push_back(member.key);
  return names;
}

std::vector<BlockDefinition> read_blocks(const Value& blocks, Problems& problems) {
  const auto* table = blocks.get<Value::Table>();
  if (table == nullptr) {
    problems.add(blocks.where,
                 fmt::format("'model.blocks' must be a table, not {}", to_string(blocks)));
    return {};
  }
  std::vector<BlockDefinition> result;
  for (const Member& member : *table) result.push_back(read_block(member, problems));
  CycleSearch search(result, problems);
  for (BlockDefinition& block : result) {
    if (search.in_cycle(block)) block.layers = nullptr;
  }
  return result;
}

const BlockDefinition* find_block(std::span<const BlockDefinition> blocks, const Value& name,
                                  Problems& problems) {
  const auto* word = name.get<std::string>();
  if (word == nullptr) {
    problems.add(name.where,
                 fmt::format("'block' must be the name of a block, not {}", to_string(name)));
    return nullptr;
  }
  std::vector<std::string> known;
  for (const BlockDefinition& block : blocks) {
    if (block.name == *word) return &block;
    known.push_back(block.name);
  }
  const std::string guess = nearest(*word, known);
  problems.add(name.where, fmt::format("there is no block '{}' in [model.blocks]{}", *word,
                                       guess.empty() ? "" : "; did you mean '" + guess + "'?"));
  return nullptr;
}

}  // namespace annulus
