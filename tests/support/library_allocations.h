// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace annulus::testing {

// Calls of operator new in this thread, apart by who called: our code (with everything it inlines)
// or oneDNN. A test program that links this gets counting operators in place of the library's.
struct Allocations {
  std::int64_t own = 0;
  std::int64_t library = 0;
  std::size_t library_largest = 0;  // bytes, since the last reset
};

Allocations allocations();
void reset_allocations();

}  // namespace annulus::testing
