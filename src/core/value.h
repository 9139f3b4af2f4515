// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/error.h"

namespace annulus {

struct Member;

// A config value as written, with the place where it stands: what `config` reads from TOML and
// every folder's schema checks. Tables keep the order of the file.
struct Value {
  using Array = std::vector<Value>;
  using Table = std::vector<Member>;

  std::variant<Table, bool, std::int64_t, double, std::string, Array> data;
  Location where;

  template <class T>
  const T* get() const {
    return std::get_if<T>(&data);
  }
  template <class T>
  T* get() {
    return std::get_if<T>(&data);
  }
  // The member of a table; null where this is no table or has no such key.
  const Value* find(std::string_view key) const;
  Value* find(std::string_view key);
  // The value at a path "optimizer.schedule.kind" through tables; null where there is none.
  const Value* find_path(std::string_view path) const;
  // Sets a member of this table, adding it at the end where it is new.
  void set(std::string_view key, Value value);
  // Removes a member of this table where it is there.
  void erase(std::string_view key);
};

// One key of a table with the place where the key stands.
struct Member {
  std::string key;
  Location where;
  Value value;
};

// "an integer", "a string", "a table", ... for messages.
const char* type_name(const Value& value);
// As TOML on one line that reads back as the same value: 32.5, "abc", [1, 2], { a = 1 }.
std::string to_string(const Value& value);
// A key as TOML: bare where that is allowed, else in quotes.
std::string key_text(std::string_view key);

// Where the value at a path stands; where there is none, the place of the innermost table that
// there is on the way to it.
Location place_of(const Value& value, std::string_view path);

// What a relative path that is written at this place is relative to: the directory of its file. A
// place without a line is no place in a file (a `--set`): the working directory, as "".
std::string base_directory(const Location& where);

// All mistakes of a config, gathered so that they can be shown at once. The same message at the
// same place counts once: a block that is used twice has its mistakes once.
class Problems {
 public:
  void add(const Location& where, std::string message);
  void warn(const Location& where, std::string message);

  bool empty() const { return errors_.empty(); }
  std::size_t count() const { return errors_.size(); }
  const std::vector<std::string>& warnings() const { return warnings_; }
  // One Error (usage) whose message has a line a problem, in the order of file, line and column;
  // returns where there is none.
  void throw_if_any() const;

 private:
  struct Entry {
    Location where;
    std::string message;
    std::string text() const;
  };
  std::vector<Entry> errors_;
  std::vector<std::string> warnings_;
};

}  // namespace annulus
