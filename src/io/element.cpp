// SPDX-License-Identifier: Apache-2.0
#include "io/element.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/error.h"

namespace annulus {
namespace {

static_assert(std::endian::native == std::endian::little, "files are read as little-endian");

template <std::size_t bytes>
struct Bits;
template <>
struct Bits<1> {
  using type = std::uint8_t;
};
template <>
struct Bits<2> {
  using type = std::uint16_t;
};
template <>
struct Bits<4> {
  using type = std::uint32_t;
};
template <>
struct Bits<8> {
  using type = std::uint64_t;
};

std::uint8_t swap_bytes(std::uint8_t v) {
  return v;
}
std::uint16_t swap_bytes(std::uint16_t v) {
  return __builtin_bswap16(v);
}
std::uint32_t swap_bytes(std::uint32_t v) {
  return __builtin_bswap32(v);
}
std::uint64_t swap_bytes(std::uint64_t v) {
  return __builtin_bswap64(v);
}

template <class T, bool big_endian>
struct Plain {
  using Value = T;
  static constexpr std::size_t bytes = sizeof(T);
  static T load(const std::byte* at) {
    typename Bits<sizeof(T)>::type bits;
    std::memcpy(&bits, at, sizeof bits);
    if constexpr (big_endian) bits = swap_bytes(bits);
    return std::bit_cast<T>(bits);
  }
};

// An f16 has 10 bits of fraction where f32 has 23 and an exponent that is 112 less; the product
// makes normal numbers of the subnormal ones.
template <bool big_endian>
struct Half {
  using Value = float;
  static constexpr std::size_t bytes = 2;
  static float load(const std::byte* at) {
    const std::uint32_t half = Plain<std::uint16_t, big_endian>::load(at);
    const std::uint32_t sign = (half & 0x8000U) << 16;
    const std::uint32_t rest = (half & 0x7FFFU) << 13;
    const std::uint32_t finite =
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest) * 0x1p112F);
    const bool special = (half & 0x7C00U) == 0x7C00U;
    return std::bit_cast<float>(sign | (special ? rest | 0x7F800000U : finite));
  }
};

template <bool big_endian, class F>
decltype(auto) visit_order(ElementType type, F&& f) {
  using Kind = ElementType::Kind;
  const int code = static_cast<int>(type.kind) * 16 + type.bytes;
  constexpr int u = static_cast<int>(Kind::unsigned_integer) * 16;
  constexpr int i = static_cast<int>(Kind::signed_integer) * 16;
  constexpr int r = static_cast<int>(Kind::real) * 16;
  switch (code) {
    case u + 1:
      return f(Plain<std::uint8_t, big_endian>());
    case u + 2:
      return f(Plain<std::uint16_t, big_endian>());
    case u + 4:
      return f(Plain<std::uint32_t, big_endian>());
    case u + 8:
      return f(Plain<std::uint64_t, big_endian>());
    case i + 1:
      return f(Plain<std::int8_t, big_endian>());
    case i + 2:
      return f(Plain<std::int16_t, big_endian>());
    case i + 4:
      return f(Plain<std::int32_t, big_endian>());
    case i + 8:
      return f(Plain<std::int64_t, big_endian>());
    case r + 2:
      return f(Half<big_endian>());
    case r + 4:
      return f(Plain<float, big_endian>());
    case r + 8:
      return f(Plain<double, big_endian>());
    default:
      fail(ErrorKind::bug, "no element type of kind {} with {} bytes", static_cast<int>(type.kind),
           type.bytes);
  }
}

// Calls f with a loader of the element type: F must return the same type for all of them.
template <class F>
decltype(auto) visit(ElementType type, F&& f) {
  return type.big_endian ? visit_order<true>(type, f) : visit_order<false>(type, f);
}

template <class To>
void convert(ElementType type, std::span<const std::byte> from, std::span<To> to) {
  require_equal(to.size() * type.bytes, from.size(), "bytes to convert");
  visit(type, [&](auto loader) {
    using Loader = decltype(loader);
    const std::byte* at = from.data();
    for (To& value : to) {
      value = static_cast<To>(Loader::load(at));
      at += Loader::bytes;
    }
  });
}

// The class id in a number; nothing where it is none at all.
template <class T>
std::optional<std::int64_t> whole_number(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (!(std::abs(value) <= static_cast<T>(std::numeric_limits<std::int32_t>::max()))) return {};
    const auto whole = static_cast<std::int64_t>(value);
    if (static_cast<T>(whole) != value) return {};
    return whole;
  } else {
    if (!std::in_range<std::int32_t>(value)) return {};
    return static_cast<std::int64_t>(value);
  }
}

}  // namespace

std::string to_string(ElementType type) {
  static constexpr char letters[] = {'u', 'i', 'f'};
  return fmt::format("{}{}{}", letters[static_cast<int>(type.kind)], 8 * type.bytes,
                     type.big_endian && type.bytes > 1 ? " big-endian" : "");
}

void convert_to_f32(ElementType type, std::span<const std::byte> from, std::span<float> to) {
  convert(type, from, to);
}

void convert_to_f64(ElementType type, std::span<const std::byte> from, std::span<double> to) {
  convert(type, from, to);
}

std::int64_t convert_to_class_ids(ElementType type, std::span<const std::byte> from,
                                  const ClassRange& range, std::span<std::int32_t> to) {
  require_equal(to.size() * type.bytes, from.size(), "bytes to convert");
  return visit(type, [&](auto loader) -> std::int64_t {
    using Loader = decltype(loader);
    for (std::size_t i = 0; i < to.size(); ++i) {
      const auto id = whole_number(Loader::load(from.data() + i * Loader::bytes));
      if (!id) return static_cast<std::int64_t>(i);
      const bool in_range = *id >= 0 && (range.classes == 0 || *id < range.classes);
      if (!in_range && id != range.ignored) return static_cast<std::int64_t>(i);
      to[i] = static_cast<std::int32_t>(*id);
    }
    return -1;
  });
}

std::string element_text(ElementType type, std::span<const std::byte> element) {
  return visit(
      type, [&](auto loader) { return fmt::format("{}", decltype(loader)::load(element.data())); });
}

void move_channels_first(std::span<const float> from, std::int64_t channels, std::span<float> to) {
  const std::size_t positions = from.size() / static_cast<std::size_t>(channels);
  const auto count = static_cast<std::size_t>(channels);
  for (std::size_t c = 0; c < count; ++c) {
    for (std::size_t p = 0; p < positions; ++p) to[c * positions + p] = from[p * count + c];
  }
}

}  // namespace annulus
