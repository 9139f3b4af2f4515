// SPDX-License-Identifier: Apache-2.0
#include "cli/byte_sizes.h"

#include <algorithm>
#include <charconv>

#include "core/error.h"

namespace annulus {
namespace {

std::int64_t unit_of(const std::string& suffix) {
  if (suffix.empty()) return 1;
  if (suffix == "K") return std::int64_t{1} << 10;
  if (suffix == "M") return std::int64_t{1} << 20;
  if (suffix == "G") return std::int64_t{1} << 30;
  return 0;
}

std::int64_t byte_size(const std::string& part) {
  constexpr std::int64_t largest = std::int64_t{1} << 40;
  std::int64_t number = 0;
  const char* end = part.data() + part.size();
  const auto [rest, error] = std::from_chars(part.data(), end, number);
  const std::int64_t unit = error == std::errc{} ? unit_of({rest, end}) : 0;
  const bool fits = unit > 0 && number > 0 && number <= largest / unit;
  require(fits && number * unit % static_cast<std::int64_t>(sizeof(float)) == 0, ErrorKind::usage,
          "--bytes: '{}' is no number of bytes, a multiple of 4 up to 2^40, with K, M or G",
          printable(part));
  return number * unit;
}

}  // namespace

std::vector<std::int64_t> byte_sizes(const std::string& text) {
  std::vector<std::int64_t> sizes;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    sizes.push_back(byte_size(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return sizes;
}

}  // namespace annulus
