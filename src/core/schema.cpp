// SPDX-License-Identifier: Apache-2.0
#include "core/schema.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <numeric>

namespace annulus {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string number_text(double number) {
  return number == std::floor(number) && std::abs(number) < 1e15
             ? std::to_string(static_cast<std::int64_t>(number))
             : fmt::format("{}", number);
}

std::string join_words(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += '"' + words[i] + '"';
  }
  return text;
}

template <class T>
std::string list_text(const std::vector<T>& items) {
  Value::Array array;
  for (const T& item : items) array.push_back({item, {}});
  return to_string(Value{array, {}});
}

// The number in a value that is an integer or, where floats are allowed, a float.
std::optional<double> number_in(const Value& value, bool floats) {
  if (const auto* integer = value.get<std::int64_t>()) return static_cast<double>(*integer);
  if (floats) {
    if (const auto* number = value.get<double>()) return *number;
  }
  return std::nullopt;
}

// Whether one word is part of the other, as "epochs" of "num-epochs"; short ones are by chance.
bool contains(std::string_view a, std::string_view b) {
  return std::min(a.size(), b.size()) >= 4 && (a.find(b) != a.npos || b.find(a) != b.npos);
}

bool is_called(const Key& key, const std::string& name) {
  const auto& aliases = key.aliases();
  return key.name() == name || std::find(aliases.begin(), aliases.end(), name) != aliases.end();
}

std::string join_path(std::string_view path, std::string_view name) {
  return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}

// Where in the sub-tables a key called `name` exists: "optimizer.lr"; empty where it does not.
std::string find_below(const std::vector<Key>& keys, const std::string& name) {
  for (const Key& key : keys) {
    if (key.table() == nullptr) continue;
    for (const Key& inner : key.table()->keys()) {
      if (is_called(inner, name)) return key.name() + "." + inner.name();
    }
    const std::string deeper = find_below(key.table()->keys(), name);
    if (!deeper.empty()) return key.name() + "." + deeper;
  }
  return "";
}

// The key that somebody who wrote `name` may have meant; empty where none is near.
std::string meant_key(const std::vector<Key>& keys, const std::string& name) {
  std::string below = find_below(keys, name);
  if (!below.empty()) return below;
  std::vector<std::string> known;
  for (const Key& key : keys) {
    known.push_back(key.name());
    known.insert(known.end(), key.aliases().begin(), key.aliases().end());
  }
  const std::string near = nearest(name, known);
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const Key& key) { return is_called(key, near); });
  return found == keys.end() ? "" : found->name();
}

std::string resolved_path(const std::string& text, const Location& where) {
  namespace fs = std::filesystem;
  if (text.empty() || fs::path(text).is_absolute()) return text;
  std::error_code error;  // the working directory may be gone; then the path stays as it is
  const fs::path path = fs::path(base_directory(where)) / text;
  const fs::path whole = fs::absolute(path, error);
  return (error ? path : whole).lexically_normal().string();
}

}  // namespace

Key& Key::at_least(double bound) {
  return minimum_ = bound, open_minimum_ = false, *this;
}
Key& Key::above(double bound) {
  return minimum_ = bound, open_minimum_ = true, *this;
}
Key& Key::at_most(double bound) {
  return maximum_ = bound, open_maximum_ = false, *this;
}
Key& Key::below(double bound) {
  return maximum_ = bound, open_maximum_ = true, *this;
}
Key& Key::unusual_above(double bound) {
  return unusual_ = bound, *this;
}
Key& Key::one_of(std::vector<std::string> words) {
  return words_ = std::move(words), *this;
}
Key& Key::required() {
  return required_ = true, *this;
}
Key& Key::path() {
  return path_ = true, *this;
}
Key& Key::also_called(std::vector<std::string> names) {
  return aliases_ = std::move(names), *this;
}
Key& Key::present(bool* flag) {
  return present_ = flag, *this;
}

std::string Key::type() const {
  if (table_) return "table";
  if (!form_.empty()) return form_;
  if (!words_.empty()) return join_words(words_);
  static constexpr const char* names[] = {"true or false",  "integer",          "number",
                                          "string",         "list of integers", "list of numbers",
                                          "list of strings"};
  std::string text = names[target_->index()];
  if (path_) text = target_->index() == 3 ? "path" : "list of paths";
  const bool low = std::isfinite(minimum_);
  const bool high = std::isfinite(maximum_);
  if (low) text += (open_minimum_ ? " > " : " >= ") + number_text(minimum_);
  if (high) {
    text +=
        (low ? " and" : "") + std::string(open_maximum_ ? " < " : " <= ") + number_text(maximum_);
  }
  return text;
}

std::string Key::default_text() const {
  if (!target_ || required_) return "";
  return std::visit(
      Overloaded{[](const bool* v) { return std::string(*v ? "true" : "false"); },
                 [&](const std::int64_t* v) {
                   return in_range(static_cast<double>(*v)) ? std::to_string(*v) : "";
                 },
                 [&](const double* v) {
                   return in_range(*v) ? to_string(Value{*v, {}}) : "";
                 },
                 [](const std::string* v) { return v->empty() ? "" : '"' + *v + '"'; },
                 [](const auto* v) { return v->empty() ? std::string() : list_text(*v); }},
      *target_);
}

bool Key::in_range(double number) const {
  if (!std::isfinite(number)) return false;
  if (open_minimum_ ? number <= minimum_ : number < minimum_) return false;
  return open_maximum_ ? number < maximum_ : number <= maximum_;
}

void Key::read(const Value& value, Problems& problems) const {
  if (present_ != nullptr) *present_ = true;
  if (reader_) return reader_(value, problems);

  const auto wrong = [&] {
    problems.add(value.where,
                 fmt::format("'{}' must be {}, not {}", name_, type(), to_string(value)));
  };
  const auto read_number = [&](const Value& item, auto& out) {
    using T = std::decay_t<decltype(out)>;
    const std::optional<double> number = number_in(item, std::is_same_v<T, double>);
    if (!number || !in_range(*number)) return false;
    if (*number > unusual_) {
      problems.warn(item.where,
                    fmt::format("'{}' = {} is unusually large", name_, to_string(item)));
    }
    if constexpr (std::is_same_v<T, std::int64_t>) {
      out = *item.get<std::int64_t>();
    } else {
      out = *number;
    }
    return true;
  };
  const auto read_text = [&](const Value& item, std::string& out) {
    const auto* text = item.get<std::string>();
    if (text == nullptr) return false;
    if (!words_.empty() && std::find(words_.begin(), words_.end(), *text) == words_.end())
      return false;
    if (path_ && text->empty()) return false;
    out = path_ ? resolved_path(*text, item.where) : *text;
    return true;
  };
  const auto read_list = [&](auto& out, const auto& read_item) {
    const auto* array = value.get<Value::Array>();
    if (array == nullptr) return false;
    std::decay_t<decltype(out)> items(array->size());
    for (std::size_t i = 0; i < array->size(); ++i) {
      if (!read_item((*array)[i], items[i])) return false;
    }
    out = std::move(items);
    return true;
  };
  const bool good = std::visit(
      Overloaded{[&](bool* out) {
                   const auto* flag = value.get<bool>();
                   if (flag != nullptr) *out = *flag;
                   return flag != nullptr;
                 },
                 [&](std::int64_t* out) { return read_number(value, *out); },
                 [&](double* out) { return read_number(value, *out); },
                 [&](std::string* out) { return read_text(value, *out); },
                 [&](std::vector<std::string>* out) { return read_list(*out, read_text); },
                 [&](auto* out) { return read_list(*out, read_number); }},
      *target_);
  if (!good) wrong();
}

Key& Schema::key(std::string name, Key::Target target, std::string doc) {
  Key& key = keys_.emplace_back();
  key.name_ = std::move(name);
  key.doc_ = std::move(doc);
  key.target_ = target;
  return key;
}

Key& Schema::key(std::string name, std::string form, Key::Reader reader, std::string doc) {
  Key& key = keys_.emplace_back();
  key.name_ = std::move(name);
  key.doc_ = std::move(doc);
  key.form_ = std::move(form);
  key.reader_ = std::move(reader);
  return key;
}

Key& Schema::table(std::string name, Schema keys, std::string doc) {
  Key& key = keys_.emplace_back();
  key.name_ = std::move(name);
  key.doc_ = std::move(doc);
  key.table_ = std::make_shared<Schema>(std::move(keys));
  return key;
}

void Schema::fill(const Value& value, std::string_view path, Problems& problems) const {
  const auto* table = value.get<Value::Table>();
  if (table == nullptr) {
    problems.add(value.where, fmt::format("'{}' must be a table, not {}", path, to_string(value)));
    return;
  }
  for (const Member& member : *table) {
    const auto key = std::find_if(keys_.begin(), keys_.end(),
                                  [&](const Key& k) { return k.name_ == member.key; });
    if (key == keys_.end()) {
      const std::string guess = meant_key(keys_, member.key);
      problems.add(member.where,
                   fmt::format("unknown key '{}' {}{}", member.key, table_name(path),
                               guess.empty() ? "" : "; did you mean '" + guess + "'?"));
    } else if (key->table_) {
      if (key->present_ != nullptr) *key->present_ = true;
      key->table_->fill(member.value, join_path(path, member.key), problems);
    } else {
      key->read(member.value, problems);
    }
  }
  for (const Key& key : keys_) {
    if (!key.required_ || value.find(key.name_) != nullptr) continue;
    if (key.table_) {
      key.table_->fill({Value::Table{}, value.where}, join_path(path, key.name_), problems);
    } else {
      problems.add(value.where, fmt::format("missing key '{}' {}", key.name_, table_name(path)));
    }
  }
}

std::vector<DocumentedKey> documented_keys(const Schema& schema, std::string_view prefix) {
  std::vector<DocumentedKey> all;
  for (const Key& key : schema.keys()) {
    const std::string path = join_path(prefix, key.name());
    if (key.table() == nullptr) {
      all.push_back({path, key.type(), key.default_text(), key.doc(), key.is_required()});
      continue;
    }
    const std::vector<DocumentedKey> below = documented_keys(*key.table(), path);
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

void Key::resolve_paths(Value& value) const {
  if (table_) return table_->resolve_paths(value);
  if (!path_) return;
  if (auto* text = value.get<std::string>()) *text = resolved_path(*text, value.where);
  if (auto* array = value.get<Value::Array>()) {
    for (Value& item : *array) resolve_paths(item);
  }
}

void Schema::resolve_paths(Value& table) const {
  for (const Key& key : keys_) {
    if (Value* value = table.find(key.name_)) key.resolve_paths(*value);
  }
}

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(word, candidate);
    // A word of which no letter stayed is not near, however short.
    if (distance < best_distance && distance < std::max(word.size(), candidate.size())) {
      best = candidate;
      best_distance = distance;
    }
  }
  if (!best.empty()) return best;
  const auto part = std::find_if(known.begin(), known.end(),
                                 [&](const std::string& name) { return contains(name, word); });
  return part == known.end() ? "" : *part;
}

std::string table_name(std::string_view path) {
  return path.empty() ? "at the top level" : fmt::format("in [{}]", path);
}

}  // namespace annulus
