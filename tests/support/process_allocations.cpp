// SPDX-License-Identifier: Apache-2.0
#include "support/process_allocations.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <new>

#include <dlfcn.h>

// glibc's own functions, which a program's malloc may stand in front of.
extern "C" {
void* __libc_malloc(std::size_t bytes);                     // NOLINT(bugprone-reserved-identifier)
void* __libc_calloc(std::size_t count, std::size_t bytes);  // NOLINT(bugprone-reserved-identifier)
void* __libc_realloc(void* memory, std::size_t bytes);      // NOLINT(bugprone-reserved-identifier)
// NOLINTNEXTLINE(bugprone-reserved-identifier)
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
}

namespace {

struct Note {
  std::size_t bytes = 0;
  const void* caller = nullptr;
};

constexpr std::size_t capacity = 1 << 20;
std::array<Note, capacity> notes;
std::atomic<std::size_t> noted{0};
std::atomic<bool> noting{false};

void note(std::size_t bytes, const void* caller) {
  if (!noting.load(std::memory_order_relaxed)) return;
  const std::size_t place = noted.fetch_add(1, std::memory_order_relaxed);
  if (place < capacity) notes[place] = {bytes, caller};
}

void* checked(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

extern "C" {
void* malloc(std::size_t bytes) {
  note(bytes, __builtin_return_address(0));
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  note(count * bytes, __builtin_return_address(0));
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  note(bytes, __builtin_return_address(0));
  return __libc_realloc(memory, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  note(bytes, __builtin_return_address(0));
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  note(bytes, __builtin_return_address(0));
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  note(bytes, __builtin_return_address(0));
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}
}

// So that the one who asked is seen, and not the C++ library.
void* operator new(std::size_t bytes) {
  note(bytes, __builtin_return_address(0));
  return checked(__libc_malloc(std::max<std::size_t>(bytes, 1)));
}
void* operator new[](std::size_t bytes) {
  note(bytes, __builtin_return_address(0));
  return checked(__libc_malloc(std::max<std::size_t>(bytes, 1)));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  note(bytes, __builtin_return_address(0));
  return checked(__libc_memalign(static_cast<std::size_t>(alignment), bytes));
}
void operator delete(void* memory) noexcept {
  free(memory);
}
void operator delete[](void* memory) noexcept {
  free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  free(memory);
}

namespace annulus::testing {

void start_noting() {
  notes.fill({});  // so that noting does not touch pages for the first time
  noted = 0;
  noting = true;
}

std::vector<Allocation> stop_noting() {
  noting = false;
  std::vector<Allocation> allocations;
  for (std::size_t i = 0; i < std::min(noted.load(), capacity); ++i) {
    Dl_info info{};
    const bool found = dladdr(notes[i].caller, &info) != 0 && info.dli_fname != nullptr;
    const std::string file = found ? info.dli_fname : "?";
    allocations.push_back({notes[i].bytes, file.substr(file.rfind('/') + 1)});
  }
  return allocations;
}

}  // namespace annulus::testing
