// SPDX-License-Identifier: Apache-2.0
#include "cli/same_config.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "cli/run_config.h"
#include "comm/agree.h"
#include "config/config.h"

namespace annulus {
namespace {

constexpr char separator = '\x1e';  // no word of a command line and no TOML holds it

std::string words_of(const ConfigOptions& options) {
  std::string words = options.config;
  for (const std::string& set : options.sets) words += separator + set;
  return words;
}

std::string file_of(const ConfigOptions& options) {
  std::error_code error;
  return std::filesystem::absolute(options.config, error).lexically_normal().string();
}

bool is_there(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

std::vector<std::string> texts_of(const ConfigOptions& options) {
  std::vector<std::string> texts;
  for (const Value& value : read_configs(options)) texts.push_back(to_toml(value));
  return texts;
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += text + separator;
  return all;
}

std::vector<std::string> split(const std::string& all) {
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = all.find(separator, at);
    texts.push_back(all.substr(at, end - at));
    at = end + 1;
  }
  return texts;
}

[[noreturn]] void refuse(const std::string& where, const std::string& first,
                         const std::string& second) {
  throw Error(ErrorKind::usage,
              fmt::format("this rank was started with another config than rank 0, {}", where))
      .values(first, second);
}

void compare(const std::vector<std::string>& first, const std::vector<std::string>& second) {
  for (std::size_t point = 0; point < std::min(first.size(), second.size()); ++point) {
    const auto difference = first_difference(parse_config(first[point], "rank 0"),
                                             parse_config(second[point], "this rank"));
    if (!difference) continue;
    refuse(fmt::format("key '{}'", difference->key), difference->first, difference->second);
  }
  if (first.size() == second.size()) return;
  refuse("[sweep]", fmt::format("{} experiments", first.size()), std::to_string(second.size()));
}

std::string text_of(const Value* value) {
  constexpr std::size_t longest = 100;
  if (value == nullptr) return "nothing";
  const std::string text = to_string(*value);
  return text.size() <= longest ? text : text.substr(0, longest) + "...";
}

std::optional<Difference> difference_at(const std::string& key, const Value* first,
                                        const Value* second);

std::string below(const std::string& key, const std::string& name) {
  return key.empty() ? name : key + '.' + name;
}

std::optional<Difference> difference_in(const std::string& key, const Value& first,
                                        const Value& second) {
  for (const Member& member : *first.get<Value::Table>()) {
    auto found =
        difference_at(below(key, key_text(member.key)), &member.value, second.find(member.key));
    if (found) return found;
  }
  for (const Member& member : *second.get<Value::Table>()) {
    if (first.find(member.key) == nullptr) {
      return difference_at(below(key, key_text(member.key)), nullptr, &member.value);
    }
  }
  return std::nullopt;
}

std::optional<Difference> difference_in(const std::string& key, const Value::Array& first,
                                        const Value::Array& second) {
  for (std::size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
    auto found =
        difference_at(below(key, std::to_string(i)), i < first.size() ? &first[i] : nullptr,
                      i < second.size() ? &second[i] : nullptr);
    if (found) return found;
  }
  return std::nullopt;
}

std::optional<Difference> difference_at(const std::string& key, const Value* first,
                                        const Value* second) {
  if (first != nullptr && second != nullptr) {
    if (first->get<Value::Table>() != nullptr && second->get<Value::Table>() != nullptr)
      return difference_in(key, *first, *second);
    const auto* a = first->get<Value::Array>();
    const auto* b = second->get<Value::Array>();
    if (a != nullptr && b != nullptr) return difference_in(key, *a, *b);
    if (to_string(*first) == to_string(*second)) return std::nullopt;
  }
  return Difference{key, text_of(first), text_of(second)};
}

}  // namespace

std::optional<Difference> first_difference(const Value& first, const Value& second) {
  return difference_at("", &first, &second);
}

void require_same_config(Communicator& comm, const ConfigOptions& options) {
  if (comm.size() == 1) return;
  std::string words = words_of(options);
  std::string file = file_of(options);
  const bool same_words = agree_on_text(comm, [&] { return words; }) == words;
  const bool same_file = agree_on_text(comm, [&] { return file; }) == file;
  // The same words are meant alike where this host has no such file: rank 0 reads it for all.
  const bool differs = !same_words || (!same_file && is_there(file));
  if (agree_on_largest(comm, differs ? 1 : 0) == 0) return;
  const std::string first = agree_on_text(comm, [&] { return joined(texts_of(options)); });
  agree(comm, [&] {
    if (differs) compare(split(first), texts_of(options));
  });
}

}  // namespace annulus
