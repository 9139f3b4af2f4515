// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace annulus {

// A half-open range of samples or shards.
struct Span64 {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t count() const { return end - begin; }
};

// The `part`-th of `parts` shares of `count` things: floor(part count / parts) up to
// floor((part + 1) count / parts). Both cuts that results rest on use it: a global batch of n
// samples into S shards, and S shards onto R ranks. Exact for all 64-bit counts.
inline Span64 share_of(std::int64_t count, std::int64_t part, std::int64_t parts) {
  const auto bound = [&](std::int64_t p) {
    return static_cast<std::int64_t>(static_cast<__int128>(p) * count / parts);
  };
  return {bound(part), bound(part + 1)};
}

}  // namespace annulus
