// SPDX-License-Identifier: Apache-2.0
#include "core/buffer.h"

#include <cstdlib>
#include <cstring>
#include <limits>

#include <sys/mman.h>

#include "core/error.h"

namespace annulus {
namespace {

constexpr std::size_t cache_line = 64;
constexpr std::size_t huge_page = std::size_t{2} << 20;

std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

// Address space is reserved with room to align, so that the kernel can back it with huge pages;
// fresh mappings are zero without being touched.
Buffer map_huge(std::size_t bytes) {
  require(bytes <= std::numeric_limits<std::size_t>::max() / 2, ErrorKind::resource,
          "no memory for {} bytes", bytes);
  const std::size_t mapped = round_up(bytes, huge_page) + huge_page;
  void* base = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    fail(ErrorKind::resource, "{}", with_errno(fmt::format("no memory for {} bytes", bytes)));
  }
  const auto address = reinterpret_cast<std::size_t>(base);
  void* aligned = static_cast<std::byte*>(base) + (round_up(address, huge_page) - address);
  madvise(aligned, round_up(bytes, huge_page), MADV_HUGEPAGE);  // advice: a refusal is no error
  return {aligned, bytes, [base, mapped](void*, std::size_t) { munmap(base, mapped); }};
}

}  // namespace

Buffer Buffer::host(std::size_t bytes) {
  if (bytes == 0) return {};
  if (bytes >= huge_page) return map_huge(bytes);
  void* data = std::aligned_alloc(cache_line, round_up(bytes, cache_line));
  require(data != nullptr, ErrorKind::resource, "no memory for {} bytes", bytes);
  std::memset(data, 0, bytes);
  return {data, bytes, [](void* memory, std::size_t) { std::free(memory); }};
}

}  // namespace annulus
