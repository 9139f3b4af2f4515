// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

namespace annulus {

// The compute threads of this rank: OpenMP's pool, which oneDNN uses too, so that there is one.
// Only the trainer's thread starts parallel regions.
void set_parallel_threads(int threads);
int parallel_threads();

// Calls body(context, part, parts) once for each part, each on its own thread; returns when all are
// done. `parts` is parallel_threads(), but 1 within a parallel region.
void parallel_run(void (*body)(void* context, int part, int parts), void* context);

// The half-open range of `count` items that belongs to `part` of `parts`: sizes differ by at most
// one, and the split depends on the numbers alone, so results do not depend on timing.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
inline Range split_range(std::int64_t count, int part, int parts) {
  const std::int64_t base = count / parts;
  const std::int64_t more = count % parts;
  const std::int64_t begin = part * base + (part < more ? part : more);
  return {begin, begin + base + (part < more ? 1 : 0)};
}

// Calls f(begin, end) for contiguous ranges that cover 0..count, one a thread. A small count, below
// `grain` items a thread, uses fewer threads.
template <class F>
void parallel_for(std::int64_t count, std::int64_t grain, F&& f) {
  if (count <= 0) return;
  struct Context {
    F& f;
    std::int64_t count;
    int used;
  };
  const std::int64_t wanted = (count + grain - 1) / grain;
  const int used = static_cast<int>(wanted < parallel_threads() ? wanted : parallel_threads());
  if (used <= 1) {
    f(std::int64_t{0}, count);
    return;
  }
  Context context{f, count, used};
  parallel_run(
      [](void* raw, int part, int parts) {
        auto& c = *static_cast<Context*>(raw);
        // Where the system gives fewer threads than asked for, each takes several ranges.
        for (; part < c.used; part += parts) {
          const Range range = split_range(c.count, part, c.used);
          if (range.begin < range.end) c.f(range.begin, range.end);
        }
      },
      &context);
}

}  // namespace annulus
