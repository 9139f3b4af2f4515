// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.h"
#include "io/transform.h"

using namespace annulus;

namespace {

std::vector<float> varied_by(const Transform& transform, std::vector<float> values,
                             std::int64_t sample = 0, std::int64_t epoch = 0) {
  std::vector<float> scratch(transform.scratch_size());
  transform.apply(values, sample, epoch, scratch);
  return values;
}

// The window of `image` (height x width) that starts at (dy, dx), 0 outside, mirrored or not.
std::vector<float> window(const std::vector<float>& image, int height, int width, int dy, int dx,
                          bool mirrored) {
  std::vector<float> result;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const int column = (mirrored ? width - 1 - x : x) + dx;
      const int row = y + dy;
      const bool inside = row >= 0 && row < height && column >= 0 && column < width;
      result.push_back(inside ? image[static_cast<std::size_t>(row * width + column)] : 0);
    }
  }
  return result;
}

std::vector<float> numbers(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

}  // namespace

TEST_CASE("inputs are (value * scale - mean) / std, by channel or for all") {
  const std::vector<float> image = {0, 4, 8, 16};
  const std::vector<double> mean = {0.5, 1};
  const std::vector<double> std = {0.25, 2};
  CHECK(varied_by(Transform({2, 1, 2}, 0.25, mean, std, {}, 1), image) ==
        std::vector<float>{-2, 2, 0.5F, 1.5F});
  CHECK(varied_by(Transform({2, 1, 2}, 0.25, std::vector<double>{1}, std, {}, 1), image) ==
        std::vector<float>{-4, 0, 0.5F, 1.5F});
  CHECK(varied_by(Transform({2, 1, 2}, 0.25, {}, {}, {}, 1), image) ==
        std::vector<float>{0, 1, 2, 4});
  CHECK(varied_by(Transform({4}, 1, std::vector<double>{0, 1, 2, 3}, {}, {}, 1), image) ==
        std::vector<float>{0, 3, 6, 13});
  CHECK(varied_by(Transform({2, 1, 2}, 1, {}, {}, {}, 1), image) == image);
}

TEST_CASE("mean and std of another length than the channels are refused with both numbers") {
  CHECK_THROWS_WITH_AS(Transform({3, 8, 8}, 1, std::vector<double>{1, 2}, {}, {}, 1),
                       "`mean` has neither one number nor one a channel of inputs of 3x8x8: "
                       "expected 3, found 2",
                       Error);
  CHECK_THROWS_WITH_AS(Transform({8}, 1, {}, std::vector<double>{1, 2}, {}, 1),
                       doctest::Contains("`std`"), Error);
  CHECK_THROWS_WITH_AS(Transform({8}, 1, {}, {}, {1, false}, 1),
                       doctest::Contains("varies images (C, H, W), not inputs of 8"), Error);
}

TEST_CASE("a varied image is one of the windows of the padded image, mirrored or not") {
  const std::vector<float> image = numbers(12);  // 3 x 4
  const Transform transform({1, 3, 4}, 1, {}, {}, {2, true}, 9);
  std::set<std::vector<float>> wanted;
  for (int dy = -2; dy <= 2; ++dy) {
    for (int dx = -2; dx <= 2; ++dx) {
      for (bool mirrored : {false, true}) wanted.insert(window(image, 3, 4, dy, dx, mirrored));
    }
  }
  REQUIRE(wanted.size() == 50);
  std::set<std::vector<float>> seen;
  for (int sample = 0; sample < 1000; ++sample) {
    const std::vector<float> varied = varied_by(transform, image, sample, 1);
    REQUIRE(wanted.count(varied) == 1);
    seen.insert(varied);
  }
  CHECK(seen.size() == 50);
}

TEST_CASE("all channels of an image are varied alike, also by more padding than the image has") {
  std::vector<float> image = numbers(18);  // two channels of 3 x 3, the second 9 more
  const Transform transform({2, 3, 3}, 1, {}, {}, {5, true}, 4);
  for (int sample = 0; sample < 200; ++sample) {
    const std::vector<float> varied = varied_by(transform, image, sample);
    for (std::size_t i = 0; i < 9; ++i) {
      CHECK(varied[i + 9] == (varied[i] == 0 ? 0 : varied[i] + 9));
    }
  }
}

TEST_CASE("variation depends on seed, sample and epoch alone") {
  const std::vector<float> image = numbers(64);
  const auto all = [&](std::uint64_t seed, std::int64_t epoch) {
    const Transform transform({1, 8, 8}, 1, {}, {}, {3, true}, seed);
    std::vector<std::vector<float>> images;
    for (int sample = 0; sample < 20; ++sample) {
      images.push_back(varied_by(transform, image, sample, epoch));
    }
    return images;
  };
  CHECK(all(1, 0) == all(1, 0));
  CHECK(all(1, 0) != all(1, 1));
  CHECK(all(1, 0) != all(2, 0));
}

TEST_CASE("padding is black before it is normalised") {
  const Transform transform({1, 2, 2}, 0.5, std::vector<double>{1}, std::vector<double>{2},
                            {1, false}, 3);
  // Inside: (4 * 0.5 - 1) / 2; black: (0 - 1) / 2.
  std::set<float> seen;
  for (int sample = 0; sample < 50; ++sample) {
    for (float value : varied_by(transform, {4, 4, 4, 4}, sample)) seen.insert(value);
  }
  CHECK(seen == std::set<float>{-0.5F, 0.5F});
}

TEST_CASE("half of the images are mirrored") {
  const Transform transform({1, 1, 2}, 1, {}, {}, {0, true}, 5);
  int mirrored = 0;
  for (int sample = 0; sample < 10'000; ++sample) {
    mirrored += varied_by(transform, {1, 2}, sample)[0] == 2 ? 1 : 0;
  }
  CHECK(mirrored > 4750);  // five standard deviations of 50
  CHECK(mirrored < 5250);
}
