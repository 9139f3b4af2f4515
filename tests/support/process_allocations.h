// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace annulus::testing {

// One allocation of any thread of this process, by malloc and its kin or by operator new.
struct Allocation {
  std::size_t bytes = 0;
  std::string library;  // file name of the program or shared library whose code asked for it
};

// From now on all allocations of the process are noted. Not for a build with sanitizers, which
// bring a malloc of their own.
void start_noting();
// Those since start_noting(), which ends with it.
std::vector<Allocation> stop_noting();

}  // namespace annulus::testing
