// SPDX-License-Identifier: Apache-2.0
#include "support/library_allocations.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <string_view>

#include <link.h>

namespace {

struct Extent {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

int find_library(dl_phdr_info* info, std::size_t, void* found) {
  if (std::string_view(info->dlpi_name).find("libdnnl") == std::string_view::npos) return 0;
  auto& extent = *static_cast<Extent*>(found);
  extent.begin = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    extent.end =
        std::max<std::uintptr_t>(extent.end, info->dlpi_addr + part.p_vaddr + part.p_memsz);
  }
  return 1;
}

bool from_library(const void* caller) {
  static const Extent extent = [] {
    Extent found;
    dl_iterate_phdr(find_library, &found);
    return found;
  }();
  const auto address = reinterpret_cast<std::uintptr_t>(caller);
  return address >= extent.begin && address < extent.end;
}

thread_local annulus::testing::Allocations counts;

void* counted(std::size_t bytes, std::size_t alignment, const void* caller) {
  if (from_library(caller)) {
    ++counts.library;
    counts.library_largest = std::max(counts.library_largest, bytes);
  } else {
    ++counts.own;
  }
  const std::size_t size =
      (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  void* memory = alignment <= alignof(std::max_align_t) ? std::malloc(size)
                                                        : std::aligned_alloc(alignment, size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// The other forms of the library call these.
void* operator new(std::size_t bytes) {
  return counted(bytes, 1, __builtin_return_address(0));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace annulus::testing {

Allocations allocations() {
  return counts;
}

void reset_allocations() {
  counts = {};
}

}  // namespace annulus::testing
