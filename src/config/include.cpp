// SPDX-License-Identifier: Apache-2.0
#include "config/include.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "config/toml_reader.h"

namespace annulus {
namespace {

namespace fs = std::filesystem;

// Puts a table's own members over those of `base`; tables on both sides are merged in turn.
void merge_under(Value& own, Value base) {
  auto& merged = *base.get<Value::Table>();
  for (Member& member : *own.get<Value::Table>()) {
    Value* below = base.find(member.key);
    if (below == nullptr) {
      merged.push_back(std::move(member));
      continue;
    }
    if (below->get<Value::Table>() != nullptr && member.value.get<Value::Table>() != nullptr) {
      merge_under(member.value, std::move(*below));
    }
    const auto place = std::find_if(merged.begin(), merged.end(),
                                    [&](const Member& m) { return m.key == member.key; });
    *place = std::move(member);
  }
  own.data = std::move(base.data);
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return fs::weakly_canonical(a, ignored) == fs::weakly_canonical(b, ignored);
}

Value read_included(const Value& name, std::vector<std::string>& files) {
  const auto* text = name.get<std::string>();
  if (text == nullptr) {
    throw Error(ErrorKind::usage,
                fmt::format("'include' must be a file or a list of files, not {}", to_string(name)))
        .at(name.where);
  }
  const std::string path =
      (fs::path(base_directory(name.where)) / *text).lexically_normal().string();
  for (const std::string& file : files) {
    if (!same_file(file, path)) continue;
    throw Error(ErrorKind::usage, fmt::format("'{}' includes itself", path)).at(name.where);
  }
  Value value = read_toml(read_text_file(path, name.where), path);
  files.push_back(path);
  resolve_includes(value, files);
  files.pop_back();
  return value;
}

Value take_include(Value::Table& table) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [](const Member& member) { return member.key == "include"; });
  if (found == table.end()) return {Value::Array{}, {}};
  Value names = std::move(found->value);
  table.erase(found);
  if (names.get<Value::Array>() != nullptr) return names;
  const Location where = names.where;
  return {Value::Array{std::move(names)}, where};
}

}  // namespace

std::string read_text_file(const std::string& path, const Location& where) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  // A pipe would be waited for, and a device may have no end.
  if (fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status)) {
    throw Error(ErrorKind::usage, fmt::format("'{}' is not a regular file", path)).at(where);
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file || fs::is_directory(status)) {
    if (fs::is_directory(status)) errno = EISDIR;
    throw Error(ErrorKind::usage, with_errno(fmt::format("'{}' cannot be read", path))).at(where);
  }
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void resolve_includes(Value& value, std::vector<std::string>& files) {
  if (auto* array = value.get<Value::Array>()) {
    for (Value& item : *array) resolve_includes(item, files);
  }
  auto* table = value.get<Value::Table>();
  if (table == nullptr) return;
  const Value names = take_include(*table);
  for (Member& member : *table) resolve_includes(member.value, files);
  Value base{Value::Table{}, {}};
  for (const Value& name : *names.get<Value::Array>()) {
    Value file = read_included(name, files);
    merge_under(file, std::move(base));
    base = std::move(file);
  }
  if (!base.get<Value::Table>()->empty()) merge_under(value, std::move(base));
}

}  // namespace annulus
