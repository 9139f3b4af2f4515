// SPDX-License-Identifier: Apache-2.0
// The only file that knows toml++.
#include "config/toml_reader.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <toml++/toml.h>

#include "config/utf8.h"

namespace annulus {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

// Turns toml++'s nodes into Values. Its tables are sorted by key: ours go back to the order of the
// text.
class Converter {
 public:
  explicit Converter(const std::string& file) : file_(file) {}

  Value convert(const toml::node& node) const {
    Value value;
    value.where = place(node.source());
    if (const auto* table = node.as_table()) {
      value.data = convert_table(*table);
    } else if (const auto* array = node.as_array()) {
      Value::Array items;
      for (const toml::node& item : *array) items.push_back(convert(item));
      value.data = std::move(items);
    } else {
      convert_scalar(node, value);
    }
    return value;
  }

 private:
  Location place(const toml::source_region& region) const {
    return {file_, static_cast<int>(region.begin.line), static_cast<int>(region.begin.column)};
  }

  Value::Table convert_table(const toml::table& table) const {
    Value::Table members;
    for (const auto& [key, node] : table) {
      Member member{std::string(key.str()), place(key.source()), convert(node)};
      // A table that exists only as a part of a longer name has its name's place.
      if (member.value.where.line == 0) member.value.where = member.where;
      members.push_back(std::move(member));
    }
    std::stable_sort(members.begin(), members.end(), [](const Member& a, const Member& b) {
      return std::tie(a.where.line, a.where.column) < std::tie(b.where.line, b.where.column);
    });
    return members;
  }

  static void convert_scalar(const toml::node& node, Value& value) {
    if (const auto* flag = node.as_boolean()) {
      value.data = flag->get();
    } else if (const auto* integer = node.as_integer()) {
      value.data = integer->get();
    } else if (const auto* number = node.as_floating_point()) {
      value.data = number->get();
    } else if (const auto* text = node.as_string()) {
      value.data = text->get();
    } else {
      throw Error(ErrorKind::usage, "no key takes a date or a time; put it in quotes")
          .at(value.where);
    }
  }

  const std::string& file_;
};

// toml++ says "Error while parsing decimal integer: '99' is not ...".
std::string syntax_message(std::string_view description) {
  constexpr std::string_view lead = "Error while parsing ";
  const bool leads = description.starts_with(lead);
  if (leads) description.remove_prefix(lead.size());
  if (description.find("not representable in 64 bits") != description.npos) {
    const std::size_t colon = description.find(": ");
    return fmt::format("integer out of range: {}", description.substr(colon + 2));
  }
  return fmt::format("syntax error{} {}", leads ? " in" : ":", description);
}

Error syntax_error(const toml::parse_error& error, const std::string& file) {
  const auto& begin = error.source().begin;
  return Error(ErrorKind::usage, syntax_message(error.description()))
      .at({file, static_cast<int>(begin.line), static_cast<int>(begin.column)});
}

}  // namespace

Value read_toml(std::string_view text, const std::string& file) {
  if (const auto byte = find_invalid_utf8(text)) {
    throw Error(ErrorKind::usage, fmt::format("not UTF-8 at byte {}", *byte)).at({file, 0, 0});
  }
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  try {
    Value value = Converter(file).convert(toml::parse(text, std::string_view(file)));
    value.where = {file, 1, 1};
    return value;
  } catch (const toml::parse_error& error) {
    throw syntax_error(error, file);
  }
}

std::optional<Value> read_toml_value(const std::string& text) {
  try {
    Value document = read_toml("v = " + text, "");
    auto& members = *document.get<Value::Table>();
    if (members.size() != 1) return std::nullopt;  // a line break and a second key
    return std::move(members[0].value);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace annulus
