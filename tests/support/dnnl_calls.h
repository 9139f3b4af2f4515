// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace annulus::testing {

// What a process has had oneDNN do, by all threads. A program that links dnnl_calls.cpp stands
// between annulus and the library.
struct DnnlCalls {
  std::int64_t created = 0;   // primitives
  std::int64_t executed = 0;  // of all kinds
  std::int64_t reorders = 0;  // executed ones that only change a layout
};
DnnlCalls dnnl_calls();

}  // namespace annulus::testing
