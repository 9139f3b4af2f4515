// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "layers/ops.h"

namespace annulus {

// The operations of layers/ops.h as plain loops over host memory with sums in fp64, written from
// the definitions alone: the reference that real backends are tested against. All values are in the
// plain layout. It declares what it can do in place, so that memory plans are put to the test too.
std::unique_ptr<Backend> make_naive_backend();

}  // namespace annulus
