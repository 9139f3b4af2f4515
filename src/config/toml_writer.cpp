// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "config/config.h"

namespace annulus {
namespace {

bool is_table(const Value& value) {
  return value.get<Value::Table>() != nullptr;
}

// A list of tables has a line a table, so that layers can be read and compared.
std::string list_text(const Value& value) {
  const auto* array = value.get<Value::Array>();
  if (array == nullptr || std::none_of(array->begin(), array->end(), is_table)) {
    return to_string(value);
  }
  std::string text = "[\n";
  for (const Value& item : *array) text += fmt::format("  {},\n", to_string(item));
  return text + "]";
}

void write_table(const Value& table, const std::string& path, std::string& text) {
  const auto& members = *table.get<Value::Table>();
  const bool only_tables =
      !members.empty() && std::all_of(members.begin(), members.end(),
                                      [](const Member& m) { return is_table(m.value); });
  if (!path.empty() && !only_tables) {
    text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", path);
  }
  for (const Member& member : members) {
    if (is_table(member.value)) continue;
    text += fmt::format("{} = {}\n", key_text(member.key), list_text(member.value));
  }
  for (const Member& member : members) {
    if (!is_table(member.value)) continue;
    const std::string key = key_text(member.key);
    write_table(member.value, path.empty() ? key : fmt::format("{}.{}", path, key), text);
  }
}

}  // namespace

std::string to_toml(const Value& table) {
  require(is_table(table), ErrorKind::bug, "a config is a table, not {}", type_name(table));
  std::string text;
  write_table(table, "", text);
  return text;
}

}  // namespace annulus
