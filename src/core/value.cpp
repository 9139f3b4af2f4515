// SPDX-License-Identifier: Apache-2.0
#include "core/value.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace annulus {
namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
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
    text +=
        fmt::format("{} {} = {}", text.size() > 1 ? "," : "", member.key, to_string(member.value));
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

const char* type_name(const Value& value) {
  static constexpr const char* names[] = {"a boolean", "an integer", "a float",
                                          "a string",  "an array",   "a table"};
  return names[value.data.index()];
}

std::string to_string(const Value& value) {
  if (const auto* flag = value.get<bool>()) return *flag ? "true" : "false";
  if (const auto* integer = value.get<std::int64_t>()) return std::to_string(*integer);
  if (const auto* number = value.get<double>()) return float_text(*number);
  if (const auto* text = value.get<std::string>()) return quoted(*text);
  if (const auto* array = value.get<Value::Array>()) return array_text(*array);
  return table_text(*value.get<Value::Table>());
}

void Problems::add(const Location& where, std::string message) {
  errors_.push_back({where, std::move(message)});
}

void Problems::warn(const Location& where, std::string message) {
  warnings_.push_back(where.file.empty() ? std::move(message) : to_string(where) + ": " + message);
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
    text += (entry.where.file.empty() ? "" : to_string(entry.where) + ": ") + entry.message;
  }
  throw Error(ErrorKind::usage, text);
}

}  // namespace annulus
