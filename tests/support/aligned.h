// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <new>

namespace annulus::testing {

// Memory at multiples of 64 bytes, as executors give it to operations.
template <class T>
struct Aligned {
  using value_type = T;
  static constexpr std::align_val_t alignment{64};

  Aligned() = default;
  template <class U>
  Aligned(const Aligned<U>&) {}  // NOLINT(google-explicit-constructor): allocators convert
  T* allocate(std::size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), alignment));
  }
  void deallocate(T* memory, std::size_t) { ::operator delete(memory, alignment); }
  friend bool operator==(const Aligned&, const Aligned&) { return true; }
};

}  // namespace annulus::testing
