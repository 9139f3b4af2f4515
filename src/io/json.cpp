// SPDX-License-Identifier: Apache-2.0
#include "io/json.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace annulus {
namespace {

std::string text_of(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}
std::string text_of(std::int64_t value) {
  return std::to_string(value);
}
std::string text_of(std::string_view value) {
  return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}
std::string text_of(const JsonObject& value) {
  return value.text();
}

template <class T>
std::string list_of(std::span<const T> values) {
  std::string text = "[";
  for (const T& value : values) {
    if (text.size() > 1) text += ',';
    text += text_of(value);
  }
  return text + ']';
}

}  // namespace

JsonObject& JsonObject::add(std::string_view key, std::string_view text) {
  if (!members_.empty()) members_ += ',';
  members_ += text_of(key);
  members_ += ':';
  members_ += text;
  return *this;
}

JsonObject& JsonObject::set(std::string_view key, double value) {
  return add(key, text_of(value));
}
JsonObject& JsonObject::set(std::string_view key, bool value) {
  return add(key, value ? "true" : "false");
}
JsonObject& JsonObject::set(std::string_view key, std::string_view value) {
  return add(key, text_of(value));
}
JsonObject& JsonObject::set(std::string_view key, const char* value) {
  return add(key, text_of(std::string_view(value)));
}
JsonObject& JsonObject::set(std::string_view key, const JsonObject& value) {
  return add(key, value.text());
}
JsonObject& JsonObject::set_integer(std::string_view key, std::int64_t value) {
  return add(key, text_of(value));
}
JsonObject& JsonObject::set_null(std::string_view key) {
  return add(key, "null");
}
JsonObject& JsonObject::set(std::string_view key, std::span<const double> values) {
  return add(key, list_of(values));
}
JsonObject& JsonObject::set(std::string_view key, std::span<const std::int64_t> values) {
  return add(key, list_of(values));
}
JsonObject& JsonObject::set(std::string_view key, std::span<const std::string> values) {
  return add(key, list_of(values));
}
JsonObject& JsonObject::set(std::string_view key, std::span<const JsonObject> values) {
  return add(key, list_of(values));
}

std::string to_text(std::span<const JsonObject> values) {
  return list_of(values);
}

}  // namespace annulus
