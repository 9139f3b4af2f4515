// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#if defined(__AVX__)
#include <immintrin.h>
#endif

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

 private:
  // As wide as the registers of the baseline.
  static constexpr int step = width < 8 ? width : 8;
  static constexpr int parts = width / step;
  typedef float Part __attribute__((vector_size(step * sizeof(float))));
  typedef std::int32_t Integers __attribute__((vector_size(step * sizeof(std::int32_t))));

 public:
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
  // The same past the caches, for what is too large to be found there again; L is 8 or 16, `to` a
  // multiple of 32 bytes. Whoever does so ends with fence_stores().
  void stream(float* to) const {
#if defined(__AVX__)
    for (int p = 0; p < parts; ++p) _mm256_stream_ps(to + p * step, part_[p]);
#else
    store(to, L);
#endif
  }
  float operator[](int lane) const {
    return part_[lane / step][lane % step];
  }

  friend Lanes operator+(const Lanes& a, const Lanes& b) {
    return zip(a, b, [](Part x, Part y) { return x + y; });
  }
  friend Lanes operator-(const Lanes& a, const Lanes& b) {
    return zip(a, b, [](Part x, Part y) { return x - y; });
  }
  friend Lanes operator*(const Lanes& a, const Lanes& b) {
    return zip(a, b, [](Part x, Part y) { return x * y; });
  }
  Lanes& operator+=(const Lanes& other) {
    return *this = *this + other;
  }

  // 0 where a lane is negative; a NaN stays.
  Lanes clipped() const {
    return zip(*this, *this, [](Part x, Part) { return x < Part{} ? Part{} : x; });
  }
  // Numbers of a row's lanes that go with the values.
  class Indices {
   public:
    explicit Indices(std::int32_t all) {
      for (int p = 0; p < parts; ++p) part_[p] = all - Integers{};
    }
    template <class Index>
    void store(Index* to, [[maybe_unused]] int n) const {
      if constexpr (L == 0) {
        for (int l = 0; l < n; ++l) to[l] = static_cast<Index>(part_[l / step][l % step]);
      } else {
        typedef Index Converted __attribute__((vector_size(step * sizeof(Index))));
        for (int p = 0; p < parts; ++p) {
          const Converted values = __builtin_convertvector(part_[p], Converted);
          std::memcpy(to + p * step, &values, sizeof(values));
        }
      }
    }

   private:
    friend Lanes;
    Integers part_[parts];
  };

  // Becomes `v`, and `where` becomes `here`, in lanes where v is not at most this; a NaN is taken,
  // and stays.
  void take_greater(const Lanes& v, Indices& where, std::int32_t here) {
    for (int p = 0; p < parts; ++p) {
      const Integers take = ~(v.part_[p] <= part_[p]) & (part_[p] == part_[p]);
      part_[p] = take ? v.part_[p] : part_[p];
      where.part_[p] = take ? here - Integers{} : where.part_[p];
    }
  }

  // This where `gate` is above 0, else 0.
  Lanes where_positive(const Lanes& gate) const {
    return zip(*this, gate, [](Part x, Part g) { return g > Part{} ? x : Part{}; });
  }

 private:
  // A part in memory, at any multiple of 4 bytes. Copied as a whole: memcpy of a row would go by
  // way of the stack.
  typedef float InMemory
      __attribute__((vector_size(step * sizeof(float)), aligned(sizeof(float)), may_alias));
  static const InMemory* at(const float* p) {
    return reinterpret_cast<const InMemory*>(p);
  }
  static InMemory* at(float* p) {
    return reinterpret_cast<InMemory*>(p);
  }

  template <class F>
  static Lanes zip(const Lanes& a, const Lanes& b, const F& f) {
    Lanes result;
    for (int p = 0; p < parts; ++p) result.part_[p] = f(a.part_[p], b.part_[p]);
    return result;
  }

  Part part_[parts] = {};
};

// Makes this thread's streamed stores seen before those that follow.
inline void fence_stores() {
#if defined(__AVX__)
  _mm_sfence();
#endif
}

}  // namespace annulus::cpu
