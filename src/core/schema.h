// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/value.h"

namespace annulus {

class Schema;

// One key of a table: its type, its allowed values, what it means, and the variable it fills. Made
// by Schema's functions below; the chained calls narrow what is allowed.
class Key {
 public:
  using Target =
      std::variant<bool*, std::int64_t*, double*, std::string*, std::vector<std::int64_t>*,
                   std::vector<double>*, std::vector<std::string>*>;
  // Reads a value that has a form of its own; adds what is wrong to the problems.
  using Reader = std::function<void(const Value& value, Problems& problems)>;

  Key& at_least(double bound);  // value >= bound
  Key& above(double bound);     // value > bound
  Key& at_most(double bound);   // value <= bound
  Key& below(double bound);     // value < bound
  // A larger number is accepted, with a warning.
  Key& unusual_above(double bound);
  Key& one_of(std::vector<std::string> words);
  Key& required();
  // The text is a path: one that is not absolute is relative to base_directory() of its place. The
  // target gets it absolute.
  Key& path();
  // What people may call this key elsewhere; such a name is unknown, but gets this one as the hint.
  Key& also_called(std::vector<std::string> names);
  // Set to true where the key is present.
  Key& present(bool* flag);

  const std::string& name() const { return name_; }
  const std::string& doc() const { return doc_; }
  std::string type() const;  // "integer >= 1", "\"a\" or \"b\"", for docs and messages
  // "" for a key without one: also where the variable holds what is not allowed, as 0 for "not
  // given".
  std::string default_text() const;
  const std::vector<std::string>& aliases() const { return aliases_; }
  bool is_required() const { return required_; }
  const Schema* table() const { return table_.get(); }  // not null: the key is a table

 private:
  friend class Schema;
  void read(const Value& value, Problems& problems) const;
  void resolve_paths(Value& value) const;
  bool in_range(double number) const;

  std::string name_;
  std::string doc_;
  std::string form_;  // type in words where a Reader does the reading
  std::optional<Target> target_;
  Reader reader_;
  std::shared_ptr<Schema> table_;
  double minimum_ = -std::numeric_limits<double>::infinity();
  double maximum_ = std::numeric_limits<double>::infinity();
  double unusual_ = std::numeric_limits<double>::infinity();
  bool open_minimum_ = false;
  bool open_maximum_ = false;
  std::vector<std::string> words_;
  std::vector<std::string> aliases_;
  bool required_ = false;
  bool path_ = false;
  bool* present_ = nullptr;
};

// The keys that one table of a config may have. Each folder declares the keys of what it configures
// in a function `Schema describe(Spec&)` beside the Spec; the variables' values at that time are
// the defaults. The targets must outlive the schema.
class Schema {
 public:
  // The type follows from the target. An integer is accepted for a float, never the other way.
  Key& key(std::string name, Key::Target target, std::string doc);
  // A value with a form of its own; `form` says it in words: "integer, [h, w] or \"same\"".
  Key& key(std::string name, std::string form, Key::Reader reader, std::string doc);
  // A sub-table. One that is required() has required keys, which are then missing in its name.
  Key& table(std::string name, Schema keys, std::string doc);

  // Fills the targets from a table. Adds to `problems`: keys that are unknown (with the nearest
  // known one, or the sub-table that they belong to), missing, of the wrong type, out of range or
  // not finite. `path` names the table in messages: "optimizer.schedule", "" for the top of the
  // file.
  void fill(const Value& table, std::string_view path, Problems& problems) const;

  // Makes the paths in a table absolute, so that it can be written to another directory.
  void resolve_paths(Value& table) const;

  const std::vector<Key>& keys() const { return keys_; }

 private:
  std::vector<Key> keys_;
};

// A key as documentation shows it.
struct DocumentedKey {
  std::string path;  // "optimizer.schedule.kind"
  std::string type;
  std::string default_text;
  std::string doc;
  bool required = false;
};

// All keys of a schema and its sub-tables but the tables themselves, in order; `prefix` is the path
// of the schema's own table.
std::vector<DocumentedKey> documented_keys(const Schema& schema, std::string_view prefix = "");

// The word of `known` that is nearest to `word` by edit distance, or that contains it or is
// contained in it; empty where none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

// The name of a table for messages: "in [optimizer]", "at the top level".
std::string table_name(std::string_view path);

}  // namespace annulus
