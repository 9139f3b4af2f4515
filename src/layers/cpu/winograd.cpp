// SPDX-License-Identifier: Apache-2.0
#include "layers/cpu/winograd.h"

#include <algorithm>

#include "core/cpu/parallel.h"
#include "core/error.h"

#if defined(__AVX2__) && defined(__FMA__)
#include "layers/cpu/winograd_transforms.h"
#endif

namespace annulus::cpu {

#if defined(__AVX2__) && defined(__FMA__)

namespace {

// Images of a blocked value, 8 channels at a time.
class Planes {
 public:
  Planes(std::int64_t channels, const WinogradShape& shape, int block)
      : height_(shape.height),
        width_(shape.width),
        block_(block),
        image_(channels * shape.height * shape.width),
        down_((shape.height + 3) / 4),
        across_((shape.width + 3) / 4) {}

  // Where the plane of 8 channels begins; neighbours along a row are block() apart.
  std::int64_t plane(std::int64_t image, std::int64_t group) const {
    const std::int64_t first = group * lanes;
    return image * image_ + first / block_ * block_ * height_ * width_ + first % block_;
  }
  std::int64_t height() const { return height_; }
  std::int64_t width() const { return width_; }
  std::int64_t block() const { return block_; }

  struct Tile {
    std::int64_t image, y, x;  // of its first result
  };
  Tile tile(std::int64_t number) const {
    const std::int64_t row = number / across_;
    return {row / down_, row % down_ * result_edge, number % across_ * result_edge};
  }

 private:
  std::int64_t height_, width_, block_, image_, down_, across_;
};

// The Size x Size values around (y, x) and on, zero outside the image.
template <int Size>
void gather(const Planes& planes, const float* plane, std::int64_t y, std::int64_t x, Vector* to) {
  const std::int64_t step = planes.block();
  const bool inside = y >= 0 && x >= 0 && y + Size <= planes.height() && x + Size <= planes.width();
  for (int i = 0; i < Size; ++i) {
    const float* row = plane + ((y + i) * planes.width() + x) * step;
    for (int j = 0; j < Size; ++j) {
      const bool there =
          inside || (y + i >= 0 && y + i < planes.height() && x + j >= 0 && x + j < planes.width());
      to[i * Size + j] = there ? load(row + j * step) : _mm256_setzero_ps();
    }
  }
}

// Transformed values of some tiles: (36, channels / 8, tiles, 8).
struct Transformed {
  float* values;
  std::int64_t groups;
  std::int64_t tiles;

  float* at(int point, std::int64_t group) const {
    return values + (point * groups + group) * tiles * lanes;
  }
};

constexpr std::size_t floats_of(std::int64_t channels, std::int64_t tiles) {
  return static_cast<std::size_t>(points * channels * tiles);
}

// Groups begin <= group < end of tiles first, first + 1, ... into `to`.
template <int Size, class Transform>
void transform_tiles(const Planes& planes, const float* values, std::int64_t first,
                     std::int64_t begin, std::int64_t end, int overlap, const Transformed& to,
                     const Transform& transform) {
  for (std::int64_t group = begin; group < end; ++group) {
    for (std::int64_t t = 0; t < to.tiles; ++t) {
      const Planes::Tile tile = planes.tile(first + t);
      Vector taken[Size * Size];
      Vector made[points];
      gather<Size>(planes, values + planes.plane(tile.image, group), tile.y - overlap,
                   tile.x - overlap, taken);
      both_ways<Size, edge>(taken, made, transform);
      for (int p = 0; p < points; ++p) store(to.at(p, group) + t * lanes, made[p]);
    }
  }
}

// Rows tiles x 16 channels: `source` (groups, tiles, 8) times `weight` (channels, 16), into two
// groups of the result.
template <int Rows>
void product(const float* source, std::int64_t source_stride, std::int64_t groups,
             const float* weight, float* result, std::int64_t result_stride) {
  Vector sum[Rows][2];
  for (int r = 0; r < Rows; ++r) sum[r][0] = sum[r][1] = _mm256_setzero_ps();
  for (std::int64_t group = 0; group < groups; ++group) {
    for (int c = 0; c < lanes; ++c) {
      const Vector w0 = load(weight + c * panel);
      const Vector w1 = load(weight + c * panel + lanes);
      for (int r = 0; r < Rows; ++r) {
        const Vector s = _mm256_broadcast_ss(source + r * lanes + c);
        sum[r][0] = fma(s, w0, sum[r][0]);
        sum[r][1] = fma(s, w1, sum[r][1]);
      }
    }
    source += source_stride;
    weight += lanes * panel;
  }
  for (int r = 0; r < Rows; ++r) {
    store(result + r * lanes, sum[r][0]);
    store(result + result_stride + r * lanes, sum[r][1]);
  }
}

constexpr int rows = 6;  // 12 sums, 2 weights and one value of the source: the registers of AVX2

void product_of_tiles(const Transformed& source, int point, const float* weight, float* result) {
  const float* from = source.at(point, 0);
  const std::int64_t stride = source.tiles * lanes;
  std::int64_t t = 0;
  for (; t + rows <= source.tiles; t += rows) {
    product<rows>(from + t * lanes, stride, source.groups, weight, result + t * lanes, stride);
  }
  const auto rest = [&]<int Rows>() {
    product<Rows>(from + t * lanes, stride, source.groups, weight, result + t * lanes, stride);
  };
  switch (source.tiles - t) {
    case 5:
      return rest.operator()<5>();
    case 4:
      return rest.operator()<4>();
    case 3:
      return rest.operator()<3>();
    case 2:
      return rest.operator()<2>();
    case 1:
      return rest.operator()<1>();
    default:
      return;
  }
}

void store_results(const Planes& planes, const Transformed& products, std::int64_t first,
                   std::int64_t group, std::int64_t from_group, const WinogradTail& tail,
                   float* result) {
  const Vector bias = tail.bias == nullptr ? _mm256_setzero_ps() : load(tail.bias + group * lanes);
  for (std::int64_t t = 0; t < products.tiles; ++t) {
    Vector taken[points];
    Vector made[result_edge * result_edge];
    for (int p = 0; p < points; ++p) taken[p] = load(products.at(p, from_group) + t * lanes);
    both_ways<edge, result_edge>(taken, made, transform_result);
    const Planes::Tile tile = planes.tile(first + t);
    const std::int64_t down = std::min<std::int64_t>(result_edge, planes.height() - tile.y);
    const std::int64_t across = std::min<std::int64_t>(result_edge, planes.width() - tile.x);
    const std::int64_t plane = planes.plane(tile.image, group);
    for (std::int64_t i = 0; i < down; ++i) {
      for (std::int64_t j = 0; j < across; ++j) {
        const std::int64_t place =
            plane + ((tile.y + i) * planes.width() + tile.x + j) * planes.block();
        Vector value = made[i * result_edge + j] + bias;
        if (tail.addend != nullptr) value = value + load(tail.addend + place);
        if (tail.relu) value = _mm256_max_ps(value, _mm256_setzero_ps());
        store(result + place, value);
      }
    }
  }
}

// How a convolution is cut: blocks of tiles, and where there are fewer of them than threads, parts
// of the result's channels, whose sources are then transformed more than once.
struct Cut {
  static constexpr std::int64_t most_tiles = 48;
  static constexpr std::int64_t chunk = 64;  // channels of the result between two transforms

  Cut(const WinogradShape& shape, int threads) {
    const std::int64_t count = shape.tiles();
    const std::int64_t rounds = (count + most_tiles * threads - 1) / (most_tiles * threads);
    const std::int64_t even = (count + rounds * threads - 1) / (rounds * threads);
    tiles = std::min<std::int64_t>((even + rows - 1) / rows * rows, most_tiles);
    blocks = (count + tiles - 1) / tiles;
    parts = std::clamp<std::int64_t>(threads / blocks, 1, shape.out / panel);
  }
  std::size_t floats(const WinogradShape& shape) const {
    return floats_of(shape.in, tiles) + floats_of(chunk, tiles);
  }

  std::int64_t tiles;
  std::int64_t blocks;
  std::int64_t parts;
};

// Tiles whose transforms lie in memory at a time while the gradient of weights is summed up: a few
// megabytes, so that they stay in the cache. The order of sums depends on it.
std::int64_t gradient_tiles(const WinogradShape& shape) {
  constexpr std::int64_t most_floats = std::int64_t{2} << 20;
  const std::int64_t of_one = static_cast<std::int64_t>(floats_of(shape.in + shape.out, 1));
  return std::clamp<std::int64_t>(most_floats / of_one, 16, shape.tiles());
}

// 4 channels of the source x 16 of the result, summed over tiles.
void add_products(const float* source, const float* result, std::int64_t result_stride,
                  std::int64_t tiles, float* sums) {
  constexpr int channels = 4;
  Vector sum[channels][2];
  for (int r = 0; r < channels; ++r) {
    sum[r][0] = load(sums + r * panel);
    sum[r][1] = load(sums + r * panel + lanes);
  }
  for (std::int64_t t = 0; t < tiles; ++t) {
    const Vector r0 = load(result + t * lanes);
    const Vector r1 = load(result + result_stride + t * lanes);
    for (int r = 0; r < channels; ++r) {
      const Vector s = _mm256_broadcast_ss(source + t * lanes + r);
      sum[r][0] = fma(s, r0, sum[r][0]);
      sum[r][1] = fma(s, r1, sum[r][1]);
    }
  }
  for (int r = 0; r < channels; ++r) {
    store(sums + r * panel, sum[r][0]);
    store(sums + r * panel + lanes, sum[r][1]);
  }
}

void store_point(const WinogradShape& shape, const Vector* made, std::int64_t group,
                 std::int64_t channel, float* transformed) {
  const std::int64_t of_point = shape.in * shape.out;
  float* to = transformed + (group / 2 * shape.in + channel) * panel + group % 2 * lanes;
  for (int p = 0; p < points; ++p) store(to + p * of_point, made[p]);
}

}  // namespace

bool winograd_offered() {
  return true;
}

std::size_t winograd_weight_bytes(const WinogradShape& shape) {
  return static_cast<std::size_t>(points * shape.in * shape.out) * sizeof(float);
}

void winograd_transform_weight(const WinogradShape& shape, const float* weight,
                               float* transformed) {
  const std::int64_t tap = shape.in * shape.out;
  parallel_for(shape.out / lanes, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t group = begin; group < end; ++group) {
      for (std::int64_t channel = 0; channel < shape.in; ++channel) {
        Vector taken[kernel * kernel];
        Vector made[points];
        const float* from = weight + channel * shape.out + group * lanes;
        for (int k = 0; k < kernel * kernel; ++k) taken[k] = load(from + k * tap);
        both_ways<kernel, edge>(taken, made, transform_kernel);
        store_point(shape, made, group, channel, transformed);
      }
    }
  });
}

void winograd_transform_flipped(const WinogradShape& shape, const float* weight,
                                float* transformed) {
  const std::int64_t tap = shape.in * shape.out;
  const WinogradShape flipped = shape.transposed();
  parallel_for(flipped.out / lanes, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t group = begin; group < end; ++group) {
      for (std::int64_t first = 0; first < flipped.in; first += lanes) {
        Vector taken[kernel * kernel][lanes];
        for (int k = 0; k < kernel * kernel; ++k) {
          const float* from =
              weight + (kernel * kernel - 1 - k) * tap + group * lanes * shape.out + first;
          for (int i = 0; i < lanes; ++i) taken[k][i] = load(from + i * shape.out);
          transpose(taken[k]);
        }
        for (int i = 0; i < lanes; ++i) {
          Vector one[kernel * kernel];
          Vector made[points];
          for (int k = 0; k < kernel * kernel; ++k) one[k] = taken[k][i];
          both_ways<kernel, edge>(one, made, transform_kernel);
          store_point(flipped, made, group, first + i, transformed);
        }
      }
    }
  });
}

std::size_t winograd_workspace(const WinogradShape& shape, int threads) {
  return static_cast<std::size_t>(threads) * Cut(shape, threads).floats(shape) * sizeof(float);
}

void winograd_convolve(const WinogradShape& shape, const float* source, const float* transformed,
                       const WinogradTail& tail, float* result, std::byte* workspace) {
  const Cut cut(shape, parallel_threads());
  const Planes from(shape.in, shape, shape.in_block);
  const Planes to(shape.out, shape, shape.out_block);
  const std::int64_t panels = shape.out / panel;
  const std::size_t own_floats = cut.floats(shape);

  const auto one_block = [&](std::int64_t block, std::int64_t part, float* own) {
    const std::int64_t first = block * cut.tiles;
    const std::int64_t tiles = std::min(cut.tiles, shape.tiles() - first);
    const Transformed sources{own, shape.in / lanes, tiles};
    transform_tiles<edge>(from, source, first, 0, sources.groups, 1, sources, transform_source);
    const Transformed products{own + floats_of(shape.in, cut.tiles), Cut::chunk / lanes, tiles};
    const Range mine = split_range(panels, static_cast<int>(part), static_cast<int>(cut.parts));
    constexpr std::int64_t step = Cut::chunk / panel;
    for (std::int64_t begin = mine.begin; begin < mine.end; begin += step) {
      const std::int64_t end = std::min(begin + step, mine.end);
      for (int p = 0; p < points; ++p) {
        for (std::int64_t k = begin; k < end; ++k) {
          const float* weight = transformed + ((p * panels + k) * shape.in) * panel;
          product_of_tiles(sources, p, weight, products.at(p, 2 * (k - begin)));
        }
      }
      for (std::int64_t group = 2 * begin; group < 2 * end; ++group) {
        store_results(to, products, first, group, group - 2 * begin, tail, result);
      }
    }
  };
  struct Job {
    const decltype(one_block)& run;
    const Cut& cut;
    float* own;
    std::size_t floats;
  } job{one_block, cut, reinterpret_cast<float*>(workspace), own_floats};
  parallel_run(
      [](void* raw, int part, int parts) {
        const Job& j = *static_cast<Job*>(raw);
        const Range range = split_range(j.cut.blocks * j.cut.parts, part, parts);
        float* own = j.own + static_cast<std::size_t>(part) * j.floats;
        for (std::int64_t i = range.begin; i < range.end; ++i) {
          j.run(i / j.cut.parts, i % j.cut.parts, own);
        }
      },
      &job);
}

std::size_t winograd_gradient_workspace(const WinogradShape& shape) {
  return winograd_weight_bytes(shape) +
         floats_of(shape.in + shape.out, gradient_tiles(shape)) * sizeof(float);
}

void winograd_weight_gradient(const WinogradShape& shape, const float* source,
                              const float* result_gradient, float* gradient, std::byte* workspace) {
  const Planes from(shape.in, shape, shape.in_block);
  const Planes to(shape.out, shape, shape.out_block);
  const std::int64_t panels = shape.out / panel;
  const std::int64_t most = gradient_tiles(shape);
  auto* const sums = reinterpret_cast<float*>(workspace);
  float* const sources_memory = sums + points * shape.in * shape.out;
  float* const results_memory = sources_memory + floats_of(shape.in, most);

  for (std::int64_t first = 0; first < shape.tiles(); first += most) {
    const std::int64_t tiles = std::min(most, shape.tiles() - first);
    const Transformed sources{sources_memory, shape.in / lanes, tiles};
    const Transformed results{results_memory, shape.out / lanes, tiles};
    parallel_for(sources.groups, 1, [&](std::int64_t begin, std::int64_t end) {
      transform_tiles<edge>(from, source, first, begin, end, 1, sources, transform_source);
    });
    parallel_for(results.groups, 1, [&](std::int64_t begin, std::int64_t end) {
      transform_tiles<result_edge>(to, result_gradient, first, begin, end, 0, results,
                                   transform_gradient);
    });
    parallel_for(points * panels, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const int p = static_cast<int>(i / panels);
        const std::int64_t k = i % panels;
        float* const own = sums + i * shape.in * panel;
        if (first == 0) std::fill_n(own, shape.in * panel, 0.0F);
        for (std::int64_t channel = 0; channel < shape.in; channel += 4) {
          add_products(sources.at(p, channel / lanes) + channel % lanes, results.at(p, 2 * k),
                       tiles * lanes, tiles, own + channel * panel);
        }
      }
    });
  }
  parallel_for(panels * shape.in, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t k = i / shape.in;
      const std::int64_t channel = i % shape.in;
      for (int half = 0; half < panel; half += lanes) {
        Vector taken[points];
        Vector made[kernel * kernel];
        for (int p = 0; p < points; ++p) {
          taken[p] = load(sums + ((p * panels + k) * shape.in + channel) * panel + half);
        }
        both_ways<edge, kernel>(taken, made, transform_weight_gradient);
        float* const at = gradient + channel * shape.out + k * panel + half;
        for (int t = 0; t < kernel * kernel; ++t) store(at + t * shape.in * shape.out, made[t]);
      }
    }
  });
}

#else

bool winograd_offered() {
  return false;
}
std::size_t winograd_weight_bytes(const WinogradShape&) {
  return 0;
}
std::size_t winograd_workspace(const WinogradShape&, int) {
  return 0;
}
std::size_t winograd_gradient_workspace(const WinogradShape&) {
  return 0;
}
void winograd_transform_weight(const WinogradShape&, const float*, float*) {
  fail(ErrorKind::bug, "a build without AVX2 has no Winograd convolutions of its own");
}
void winograd_transform_flipped(const WinogradShape& shape, const float* weight, float* to) {
  winograd_transform_weight(shape, weight, to);
}
void winograd_convolve(const WinogradShape& shape, const float* source, const float*,
                       const WinogradTail&, float* result, std::byte*) {
  winograd_transform_weight(shape, source, result);
}
void winograd_weight_gradient(const WinogradShape& shape, const float* source, const float*,
                              float* gradient, std::byte*) {
  winograd_transform_weight(shape, source, gradient);
}

#endif

}  // namespace annulus::cpu
