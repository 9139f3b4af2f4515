// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <doctest/doctest.h>

#include "core/error.h"
#include "layers/window.h"

namespace annulus {
namespace {

WindowSpec square(std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  WindowSpec window;
  window.kernel = {kernel, kernel};
  window.stride = {stride, stride};
  window.padding = {padding, padding};
  return window;
}

std::int64_t output(WindowSpec window, std::int64_t input, bool ceil_mode) {
  window.ceil_mode = ceil_mode;
  return fit_window(window, {1, input, input}).output.h;
}

std::string misfit(const WindowSpec& window, const Shape& image) {
  try {
    fit_window(window, image);
    return "";
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    return error.message();
  }
}

}  // namespace

TEST_CASE("B23 pooled sizes, floor and ceil, with windows that start in the padding cut") {
  CHECK(output(square(3, 2, 0), 112, false) == 55);
  CHECK(output(square(3, 2, 0), 112, true) == 56);
  CHECK(output(square(3, 2, 1), 64, false) == 32);
  CHECK(output(square(3, 2, 1), 64, true) == 33);
  CHECK(output(square(2, 3, 1), 5, false) == 2);
  CHECK(output(square(2, 3, 1), 5, true) == 2);
  CHECK(output(square(3, 2, 0), 4, false) == 1);
  CHECK(output(square(3, 2, 0), 4, true) == 2);
}

TEST_CASE("B47 dilation 1 is dense") {
  WindowSpec window = square(3, 1, 0);
  CHECK(output(window, 7, false) == 5);
  window.dilation = {2, 2};
  CHECK(output(window, 7, false) == 3);
}

TEST_CASE("padding same: output is ceil(in / stride), extra at the end") {
  WindowSpec window = square(4, 2, 0);
  window.same = true;
  const WindowFit odd = fit_window(window, {1, 7, 8});
  CHECK(odd.output.h == 4);
  CHECK(odd.output.w == 4);
  CHECK(odd.padding.top == 1);  // 3 * 2 + 4 - 7 = 3 rows: one before, two after
  CHECK(odd.padding.bottom == 2);
  CHECK(odd.padding.left == 1);
  CHECK(odd.padding.right == 1);
  window = square(1, 3, 0);
  window.same = true;
  const WindowFit none = fit_window(window, {1, 7, 7});
  CHECK(none.output.h == 3);
  CHECK(none.padding.top + none.padding.bottom == 0);
}

TEST_CASE("B82 a window larger than the padded image is refused with both sizes") {
  CHECK(misfit(square(3, 1, 0), {8, 1, 1}) == "kernel 3 > padded input 1");
  CHECK(misfit(square(5, 1, 1), {8, 2, 9}) == "kernel 5 > padded input 4x11");
  WindowSpec dilated = square(3, 1, 0);
  dilated.dilation = {4, 4};
  CHECK(misfit(dilated, {8, 8, 8}) == "kernel 9 (with dilation 4) > padded input 8");
  CHECK(misfit(square(3, 1, 1), {8, 1, 1}).empty());
}

}  // namespace annulus
