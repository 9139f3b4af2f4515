// SPDX-License-Identifier: Apache-2.0
#include "config/utf8.h"

#include <cstdint>

namespace annulus {
namespace {

struct Lead {
  std::size_t length;     // bytes of the sequence; 0: no sequence starts so
  std::uint32_t bits;     // what the first byte gives
  std::uint32_t minimum;  // smaller code points have a shorter form
};

Lead read_lead(unsigned char byte) {
  if (byte < 0x80) return {1, byte, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, byte & 0x1FU, 0x80};
  if (byte < 0xF0) return {3, byte & 0x0FU, 0x800};
  if (byte < 0xF5) return {4, byte & 0x07U, 0x10000};
  return {0, 0, 0};
}

// Bytes of the sequence at the start of `text`; 0 where it is not valid.
std::size_t sequence_length(std::string_view text) {
  const Lead lead = read_lead(static_cast<unsigned char>(text[0]));
  if (lead.length == 0 || lead.length > text.size()) return 0;
  std::uint32_t point = lead.bits;
  for (std::size_t i = 1; i < lead.length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xC0U) != 0x80) return 0;
    point = point << 6 | (byte & 0x3FU);
  }
  const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
  return point < lead.minimum || point > 0x10FFFF || surrogate ? 0 : lead.length;
}

}  // namespace

std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
  // UTF-16 without a byte order mark is valid UTF-8 with every other byte zero.
  if (text.substr(0, 2).find('\0') != std::string_view::npos) return 0;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = sequence_length(text.substr(i));
    if (length == 0) return i;
    i += length;
  }
  return std::nullopt;
}

}  // namespace annulus
