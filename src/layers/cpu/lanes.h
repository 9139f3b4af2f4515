// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "layers/cpu/layout.h"

namespace annulus::cpu {

// The values of a row's lanes in vector registers. Said to the compiler by its vector types: from
// loops over small arrays GCC 12 makes scalar code that goes through memory.
//
// L as with_lanes() gives it: 8 or 16 lanes, 1, or 0 for any number up to 16, of which only `n` are
// in memory and the rest are zero.
template <int L>
class Lanes {
 public:
  static constexpr int width = L == 0 ? ChannelView::max_lanes : L;

  Lanes() = default;
  static Lanes load(const float* from, [[maybe_unused]] int n) {
    Lanes lanes;
    if constexpr (L == 0) {
      for (int l = 0; l < n; ++l) lanes.part_[l / step][l % step] = from[l];
    } else {
      for (int p = 0; p < parts; ++p) lanes.part_[p] = *at(from + p * step);
    }
    return lanes;
  }
  // All of a table of lanes, whose unused ones are zero.
  static Lanes of(const std::array<float, ChannelView::max_lanes>& values) {
    Lanes lanes;
    for (int p = 0; p < parts; ++p) lanes.part_[p] = *at(values.data() + p * step);
    return lanes;
  }
  void store(float* to, [[maybe_unused]] int n) const {
    if constexpr (L == 0) {
      for (int l = 0; l < n; ++l) to[l] = part_[l / step][l % step];
    } else {
      for (int p = 0; p < parts; ++p) *at(to + p * step) = part_[p];
    }
  }
  float operator[](int lane) const { return part_[lane / step][lane % step]; }

  friend Lanes operator+(const Lanes& a, const Lanes& b) {
    return zip(a, b, [](Part x, Part y) { return x + y; });
  }
  friend Lanes operator-(const Lanes& a, const Lanes& b) {
    return zip(a, b, [](Part x, Part y) { return x - y; });
  }
  friend Lanes operator*(const Lanes& a, const Lanes& b) {
    return zip(a, b, [](Part x, Part y) { return x * y; });
  }
  Lanes& operator+=(const Lanes& other) { return *this = *this + other; }

  // 0 where a lane is negative; a NaN stays.
  Lanes clipped() const {
    return zip(*this, *this, [](Part x, Part) { return x < Part{} ? Part{} : x; });
  }
  // This where `gate` is above 0, else 0.
  Lanes where_positive(const Lanes& gate) const {
    return zip(*this, gate, [](Part x, Part g) { return g > Part{} ? x : Part{}; });
  }

 private:
  // As wide as the registers of the baseline.
  static constexpr int step = width < 8 ? width : 8;
  static constexpr int parts = width / step;
  typedef float Part __attribute__((vector_size(step * sizeof(float))));
  // A part in memory, at any multiple of 4 bytes. Copied as a whole: memcpy of a row would go by
  // way of the stack.
  typedef float InMemory
      __attribute__((vector_size(step * sizeof(float)), aligned(sizeof(float)), may_alias));
  static const InMemory* at(const float* p) { return reinterpret_cast<const InMemory*>(p); }
  static InMemory* at(float* p) { return reinterpret_cast<InMemory*>(p); }

  template <class F>
  static Lanes zip(const Lanes& a, const Lanes& b, const F& f) {
    Lanes result;
    for (int p = 0; p < parts; ++p) result.part_[p] = f(a.part_[p], b.part_[p]);
    return result;
  }

  Part part_[parts] = {};
};

}  // namespace annulus::cpu
