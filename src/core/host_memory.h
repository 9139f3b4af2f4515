// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace annulus {

// Bytes that processes of this host can still get without anybody being killed: what the kernel
// calls available, with free swap, or what this process's control group (version 1 or 2) has left
// where that is less. Nothing where neither can be read.
std::optional<std::int64_t> available_memory();

// The same with another root in place of "/", for tests.
std::optional<std::int64_t> available_memory(const std::string& root);

// Bytes of this process that are resident now; 0 where that cannot be read.
std::int64_t resident_memory();

// The most bytes that were resident at a time since this process started.
std::int64_t peak_resident_memory();

}  // namespace annulus
