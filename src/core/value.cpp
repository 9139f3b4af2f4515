// SPDX-License-Identifier: Apache-2.0
#include "core/value.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <tuple>

namespace annulus {
namespace {

void append_escaped(std::string& text, char c) {
  static constexpr std::string_view named = "\b\t\n\f\r\"\\";
  static constexpr std::string_view letters = "btnfr\"\\";
  const auto code = static_cast<unsigned char>(c);
  if (const std::size_t i = named.find(c); i != std::string_view::npos) {
    text += '\\';
    text += letters[i];
  } else if (code < 0x20 || code == 0x7F) {
    text += fmt::format("\\u{:04X}", code);
  } else {
    text += c;
  }
}

std::string quoted_text(std::string_view text) {
  std::string result = "\"";
  for (char c : text) append_escaped(result, c);
  return result + '"';
}

bool is_bare(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

// The shortest decimal that reads back as the same number, with a point so that it stays a float.
std::string float_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string array_text(const Value::Array& array) {
  std::string text = "[";
  for (const Value& item : array) text += (text.size() > 1 ? ", " : "") + to_string(item);
  return text + "]";
}

std::string table_text(const Value::Table& table) {
  std::string text = "{";
  for (const Member& member : table) {
    text += fmt::format("{} {} = {}", text.size() > 1 ? "," : "", key_text(member.key),
                        to_string(member.value));
  }
  return text + (table.empty() ? "}" : " }");
}

}  // namespace

const Value* Value::find(std::string_view key) const {
  const Table* table = get<Table>();
  if (table == nullptr) return nullptr;
  const auto found = std::find_if(table->begin(), table->end(),
                                  [&](const Member& member) { return member.key == key; });
  return found == table->end() ? nullptr : &found->value;
}

Value* Value::find(std::string_view key) {
  return const_cast<Value*>(static_cast<const Value*>(this)->find(key));
}

const Value* Value::find_path(std::string_view path) const {
  const Value* value = this;
  while (value != nullptr && !path.empty()) {
    const std::size_t dot = path.find('.');
    value = value->find(path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1);
  }
  return value;
}

void Value::set(std::string_view key, Value value) {
  if (Value* present = find(key)) {
    *present = std::move(value);
    return;
  }
  Location location = value.where;
  std::get<Table>(data).push_back({std::string(key), std::move(location), std::move(value)});
}

void Value::erase(std::string_view key) {
  std::erase_if(std::get<Table>(data), [&](const Member& member) { return member.key == key; });
}

const char* type_name(const Value& value) {
  static constexpr const char* names[] = {"a table", "a boolean", "an integer",
                                          "a float", "a string",  "an array"};
  return names[value.data.index()];
}

std::string to_string(const Value& value) {
  if (const auto* flag = value.get<bool>()) return *flag ? "true" : "false";
  if (const auto* integer = value.get<std::int64_t>()) return std::to_string(*integer);
  if (const auto* number = value.get<double>()) return float_text(*number);
  if (const auto* text = value.get<std::string>()) return quoted_text(*text);
  if (const auto* array = value.get<Value::Array>()) return array_text(*array);
  return table_text(*value.get<Value::Table>());
}

std::string key_text(std::string_view key) {
  const bool bare = !key.empty() && std::all_of(key.begin(), key.end(), is_bare);
  return bare ? std::string(key) : quoted_text(key);
}

Location place_of(const Value& value, std::string_view path) {
  const Value* deepest = &value;
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    const Value* next = deepest->find(path.substr(0, dot));
    if (next == nullptr) break;
    deepest = next;
    path = dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1);
  }
  return deepest->where;
}

std::string base_directory(const Location& where) {
  if (where.line == 0) return "";
  return std::filesystem::path(where.file).parent_path().string();
}

std::string Problems::Entry::text() const {
  return where.file.empty() ? message : to_string(where) + ": " + message;
}

void Problems::add(const Location& where, std::string message) {
  message = printable(message);
  const auto same = [&](const Entry& entry) {
    return entry.message == message && to_string(entry.where) == to_string(where);
  };
  if (std::none_of(errors_.begin(), errors_.end(), same)) {
    errors_.push_back({where, std::move(message)});
  }
}

void Problems::warn(const Location& where, std::string message) {
  std::string text = Entry{where, std::move(message)}.text();
  if (std::find(warnings_.begin(), warnings_.end(), text) == warnings_.end()) {
    warnings_.push_back(std::move(text));
  }
}

void Problems::throw_if_any() const {
  if (errors_.empty()) return;
  std::vector<Entry> sorted = errors_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.where.file, a.where.line, a.where.column) <
           std::tie(b.where.file, b.where.line, b.where.column);
  });
  if (sorted.size() == 1) {
    throw Error(ErrorKind::usage, sorted[0].message).at(sorted[0].where);
  }
  std::string text;
  for (const Entry& entry : sorted) {
    if (!text.empty()) text += '\n';
    text += entry.text();
  }
  throw Error(ErrorKind::usage, text);
}

}  // namespace annulus
