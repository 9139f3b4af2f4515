// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace annulus {

// How a number is stored in a file: integers of 1, 2, 4 or 8 bytes, IEEE floats of 2, 4 or 8.
struct ElementType {
  enum class Kind : std::uint8_t { unsigned_integer, signed_integer, real };
  Kind kind = Kind::real;
  std::uint8_t bytes = 4;
  bool big_endian = false;

  friend bool operator==(const ElementType&, const ElementType&) = default;
};
std::string to_string(ElementType type);  // "u8", "f32 big-endian"

// Converts `to.size()` stored numbers to the nearest f32.
void convert_to_f32(ElementType type, std::span<const std::byte> from, std::span<float> to);
// The same in f64.
void convert_to_f64(ElementType type, std::span<const std::byte> from, std::span<double> to);

// Which class ids are good: [0, classes), or from 0 on where `classes` is 0, and `ignored`.
struct ClassRange {
  std::int64_t classes = 0;
  std::optional<std::int64_t> ignored;
};
// Converts `to.size()` stored numbers to class ids: integers, or floats with integral values.
// Returns the index of the first that is none of the range's, at which it stops; -1 if all are.
std::int64_t convert_to_class_ids(ElementType type, std::span<const std::byte> from,
                                  const ClassRange& range, std::span<std::int32_t> to);

// One stored number in full, for messages.
std::string element_text(ElementType type, std::span<const std::byte> element);

// (positions, channels) to (channels, positions).
void move_channels_first(std::span<const float> from, std::int64_t channels, std::span<float> to);

}  // namespace annulus
