// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace annulus {

// Builds the text of one JSON object on one line, members in the order of the calls. Floats are
// written in the shortest form that reads back as the same value; NaN and infinities as null.
// Strings that are not UTF-8 get replacement characters.
class JsonObject {
 public:
  JsonObject& set(std::string_view key, double value);
  JsonObject& set(std::string_view key, bool value);
  JsonObject& set(std::string_view key, std::string_view value);
  JsonObject& set(std::string_view key, const char* value);
  JsonObject& set(std::string_view key, const JsonObject& value);
  template <std::integral T>
  requires(!std::same_as<T, bool>) JsonObject& set(std::string_view key, T value) {
    return set_integer(key, static_cast<std::int64_t>(value));
  }
  JsonObject& set_null(std::string_view key);
  // Lists.
  JsonObject& set(std::string_view key, std::span<const double> values);
  JsonObject& set(std::string_view key, std::span<const std::int64_t> values);
  JsonObject& set(std::string_view key, std::span<const std::string> values);
  JsonObject& set(std::string_view key, std::span<const JsonObject> values);

  // {"a":1,"b":[2,3]} without a final newline.
  std::string text() const { return '{' + members_ + '}'; }

 private:
  JsonObject& set_integer(std::string_view key, std::int64_t value);
  JsonObject& add(std::string_view key, std::string_view text);

  std::string members_;
};

// The text of a list of objects.
std::string to_text(std::span<const JsonObject> values);

}  // namespace annulus
