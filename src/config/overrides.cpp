// SPDX-License-Identifier: Apache-2.0
#include "config/overrides.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "config/toml_reader.h"
#include "config/utf8.h"

namespace annulus {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// The end of the part of a key that starts at `begin`: a dot outside quotes, or the end.
std::size_t part_end(std::string_view key, std::size_t begin) {
  char quote = 0;
  for (std::size_t i = begin; i < key.size(); ++i) {
    if (quote == 0 && key[i] == '.') return i;
    if (quote == 0 && (key[i] == '"' || key[i] == '\'')) {
      quote = key[i];
    } else if (key[i] == quote) {
      quote = 0;
    }
  }
  return key.size();
}

// One part of a key: bare, or a quoted string.
std::optional<std::string> read_part(std::string_view part) {
  if (part.empty()) return std::nullopt;
  if (part[0] == '"' || part[0] == '\'') {
    const std::optional<Value> text = read_toml_value(std::string(part));
    if (!text || text->get<std::string>() == nullptr) return std::nullopt;
    return *text->get<std::string>();
  }
  if (key_text(part) != part) return std::nullopt;
  return std::string(part);
}

void set_places(Value& value, const Location& where) {
  value.where = where;
  if (auto* array = value.get<Value::Array>()) {
    for (Value& item : *array) set_places(item, where);
  }
  if (auto* table = value.get<Value::Table>()) {
    for (Member& member : *table) {
      member.where = where;
      set_places(member.value, where);
    }
  }
}

bool is_integer(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return !text.empty() && text[0] != '0' &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

// The element of an array that a part of a path names; null, with a problem, where there is none.
Value* element(Value::Array& array, const std::string& part, const std::string& before,
               const Location& where, Problems& problems) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
  if (error == std::errc() && end == part.data() + part.size() && index < array.size()) {
    return &array[index];
  }
  problems.add(where, fmt::format("'{}' is a list of {}; '{}' is not one of its indices (from 0)",
                                  before, array.size(), part));
  return nullptr;
}

// One step of a path; makes a table where a table has no such key.
Value* step(Value& value, const std::string& part, const std::string& before, const Location& where,
            Problems& problems) {
  if (auto* array = value.get<Value::Array>()) {
    return element(*array, part, before, where, problems);
  }
  if (value.get<Value::Table>() == nullptr) {
    problems.add(where, fmt::format("'{}' is {}, not a table: it has no '{}'", before,
                                    to_string(value), part));
    return nullptr;
  }
  if (value.find(part) == nullptr) value.set(part, {Value::Table{}, where});
  return value.find(part);
}

// Where a key stands moves to who set it last.
void set_member(Value& table, const std::string& key, const Value& value) {
  table.set(key, value);
  for (Member& member : *table.get<Value::Table>()) {
    if (member.key == key) member.where = value.where;
  }
}

}  // namespace

std::optional<std::vector<std::string>> split_key(std::string_view key) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= key.size();) {
    const std::size_t end = part_end(key, begin);
    std::optional<std::string> part = read_part(trimmed(key.substr(begin, end - begin)));
    if (!part) return std::nullopt;
    parts.push_back(std::move(*part));
    begin = end + 1;
  }
  return parts;
}

std::string join_key(const std::vector<std::string>& parts) {
  std::string key;
  for (const std::string& part : parts) {
    if (!key.empty()) key += '.';
    key += key_text(part);
  }
  return key;
}

void set_at(Value& root, const std::vector<std::string>& path, Value value, Problems& problems) {
  Value* at = &root;
  std::string before;
  for (std::size_t i = 0; i + 1 < path.size(); ++i) {
    at = step(*at, path[i], before, value.where, problems);
    if (at == nullptr) return;
    if (!before.empty()) before += '.';
    before += path[i];
  }
  if (at->get<Value::Table>() != nullptr) return set_member(*at, path.back(), value);
  Value* last = step(*at, path.back(), before, value.where, problems);
  if (last != nullptr) *last = std::move(value);
}

void apply_override(Value& config, const std::string& text, Problems& problems) {
  const Location where{"--set " + text, 0, 0};
  if (const auto byte = find_invalid_utf8(text)) {
    return problems.add({"--set", 0, 0}, fmt::format("not UTF-8 at byte {} of its text", *byte));
  }
  const std::size_t equals = text.find('=');
  const auto path = split_key(text.substr(0, equals));
  if (equals == std::string::npos || !path) {
    return problems.add(where, "must be KEY=VALUE, such as --set batch.global=64");
  }
  const std::string word(trimmed(text.substr(equals + 1)));
  std::optional<Value> value = read_toml_value(word);
  if (!value && is_integer(word)) {
    return problems.add(where, fmt::format("integer out of range: '{}' needs over 64 bits", word));
  }
  if (!value) value = Value{word, {}};
  set_places(*value, where);
  set_at(config, *path, std::move(*value), problems);
}

}  // namespace annulus
