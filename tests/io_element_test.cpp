// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.h"
#include "io/element.h"

using namespace annulus;

namespace {

using Kind = ElementType::Kind;

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> result;
  for (int value : values) result.push_back(static_cast<std::byte>(value));
  return result;
}

std::vector<float> floats(ElementType type, const std::vector<std::byte>& from) {
  std::vector<float> to(from.size() / type.bytes);
  convert_to_f32(type, from, to);
  return to;
}

std::int64_t first_bad(ElementType type, const std::vector<std::byte>& from, ClassRange range,
                       std::vector<std::int32_t>* ids = nullptr) {
  std::vector<std::int32_t> to(from.size() / type.bytes);
  const std::int64_t bad = convert_to_class_ids(type, from, range, to);
  if (ids != nullptr) *ids = to;
  return bad;
}

}  // namespace

TEST_CASE("numbers of every kind and byte order become f32") {
  CHECK(floats({Kind::unsigned_integer, 1}, bytes({0, 255})) == std::vector<float>{0, 255});
  CHECK(floats({Kind::signed_integer, 1}, bytes({0x80, 0x7F})) == std::vector<float>{-128, 127});
  CHECK(floats({Kind::unsigned_integer, 2}, bytes({0x01, 0x02})) == std::vector<float>{513});
  CHECK(floats({Kind::unsigned_integer, 2, true}, bytes({0x01, 0x02})) == std::vector<float>{258});
  CHECK(floats({Kind::signed_integer, 4, true}, bytes({0xFF, 0xFF, 0xFF, 0xFE})) ==
        std::vector<float>{-2});
  CHECK(floats({Kind::unsigned_integer, 8}, bytes({0, 0, 0, 0, 0, 0, 0, 0x80})) ==
        std::vector<float>{0x1p63F});
  CHECK(floats({Kind::real, 4}, bytes({0, 0, 0x80, 0x3F})) == std::vector<float>{1});
  CHECK(floats({Kind::real, 4, true}, bytes({0xC0, 0x20, 0, 0})) == std::vector<float>{-2.5});
  CHECK(floats({Kind::real, 8, true}, bytes({0x3F, 0xE0, 0, 0, 0, 0, 0, 0})) ==
        std::vector<float>{0.5});
}

TEST_CASE("half precision: normal, subnormal, zero, infinity and NaN") {
  const ElementType half{Kind::real, 2};
  // 1, -2, 65504 (largest), 2^-24 (smallest), 2^-14 - 2^-24 (largest subnormal), -0.
  CHECK(floats(half, bytes({0x00, 0x3C, 0x00, 0xC0, 0xFF, 0x7B, 0x01, 0x00, 0xFF, 0x03})) ==
        std::vector<float>{1, -2, 65504, 0x1p-24F, 0x1p-14F - 0x1p-24F});
  CHECK(std::signbit(floats(half, bytes({0x00, 0x80}))[0]));
  CHECK(floats(half, bytes({0x00, 0x7C}))[0] == std::numeric_limits<float>::infinity());
  CHECK(std::isnan(floats(half, bytes({0x01, 0x7C}))[0]));
  CHECK(floats({Kind::real, 2, true}, bytes({0x35, 0x55}))[0] == doctest::Approx(0.333251953125));
}

TEST_CASE("class ids are whole numbers in range or the ignored one") {
  const ElementType u8{Kind::unsigned_integer, 1};
  std::vector<std::int32_t> ids;
  CHECK(first_bad(u8, bytes({0, 9, 3}), {10, {}}, &ids) == -1);
  CHECK(ids == std::vector<std::int32_t>{0, 9, 3});
  CHECK(first_bad(u8, bytes({0, 9, 10}), {10, {}}) == 2);
  CHECK(first_bad(u8, bytes({0, 255, 10}), {10, 255}) == 2);
  CHECK(first_bad(u8, bytes({0, 255}), {0, {}}) == -1);
  CHECK(first_bad({Kind::signed_integer, 1}, bytes({0, 0xFF}), {0, {}}) == 1);
  CHECK(first_bad({Kind::signed_integer, 1}, bytes({0, 0xFF}), {0, -1}) == -1);
}

TEST_CASE("class ids stored as floats or in 64 bits") {
  const ElementType f32{Kind::real, 4};
  CHECK(first_bad(f32, bytes({0, 0, 0x40, 0x40}), {10, {}}) == -1);  // 3.0
  CHECK(first_bad(f32, bytes({0, 0, 0x60, 0x40}), {10, {}}) == 0);   // 3.5
  CHECK(first_bad(f32, bytes({0, 0, 0xC0, 0x7F}), {10, {}}) == 0);   // NaN
  CHECK(first_bad(f32, bytes({0, 0, 0x80, 0x7F}), {0, {}}) == 0);    // infinity
  const std::vector<std::byte> two_to_32 = bytes({0, 0, 0, 0, 1, 0, 0, 0});
  CHECK(first_bad({Kind::signed_integer, 8}, two_to_32, {0, {}}) == 0);
  CHECK(first_bad({Kind::unsigned_integer, 8}, bytes({255, 255, 255, 255, 255, 255, 255, 255}),
                  {0, -1}) == 0);
  CHECK(element_text({Kind::unsigned_integer, 8},
                     bytes({255, 255, 255, 255, 255, 255, 255, 255})) == "18446744073709551615");
}

TEST_CASE("channels move to the front") {
  const std::vector<float> hwc = {1, 10, 2, 20, 3, 30};
  std::vector<float> chw(6);
  move_channels_first(hwc, 2, chw);
  CHECK(chw == std::vector<float>{1, 2, 3, 10, 20, 30});
}

TEST_CASE("element types have names") {
  CHECK(to_string(ElementType{}) == "f32");
  CHECK(to_string(ElementType{Kind::signed_integer, 2, true}) == "i16 big-endian");
  CHECK(to_string(ElementType{Kind::unsigned_integer, 1, true}) == "u8");
}
