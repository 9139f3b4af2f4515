// SPDX-License-Identifier: Apache-2.0
#include "core/cpu/parallel.h"

#include <atomic>

#include <omp.h>

namespace annulus {
namespace {

// OpenMP's library is not built for the thread sanitizer, which therefore does not see its
// barriers. These atomics say the same in words that it knows: work started before the region is
// seen by its threads, and their work is seen after it.
struct Region {
  void (*body)(void*, int, int);
  void* context;
  std::atomic<int> opened{0};
  std::atomic<int> closed{0};
};

// Functions of their own: inside of parallel_run the sanitizer would not see the atomics.
__attribute__((noinline)) void open(Region& region) {
  region.opened.store(1, std::memory_order_release);
}

__attribute__((noinline)) void close(Region& region) {
  region.closed.load(std::memory_order_acquire);
}

__attribute__((noinline)) void run_part(Region& region, int part, int parts) {
  region.opened.load(std::memory_order_acquire);
  region.body(region.context, part, parts);
  region.closed.fetch_add(1, std::memory_order_release);
}

}  // namespace

void set_parallel_threads(int threads) {
  omp_set_dynamic(0);
  omp_set_num_threads(threads);
}

int parallel_threads() {
  return omp_in_parallel() ? 1 : omp_get_max_threads();
}

// The attribute reaches the outlined body of the region, whose own reads of `region`'s address the
// sanitizer would otherwise report; everything it calls is checked.
__attribute__((no_sanitize("thread"))) void parallel_run(void (*body)(void*, int, int),
                                                         void* context) {
  Region region{body, context};
  open(region);
  if (parallel_threads() == 1) {
    run_part(region, 0, 1);
  } else {
#pragma omp parallel
    run_part(region, omp_get_thread_num(), omp_get_num_threads());
  }
  close(region);
}

}  // namespace annulus
