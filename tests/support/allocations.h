// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace annulus {

// How often this thread has called operator new, of any form. A test program that calls this gets
// counting operators in place of the library's.
std::int64_t allocations();

}  // namespace annulus
