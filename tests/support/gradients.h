// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "core/progress.h"

namespace annulus::testing {

// A layout of a few hundred elements in several buckets, with a tail and an empty tensor.
ReducerLayout small_layout(std::int64_t shards);
std::int64_t elements_of(const ReducerLayout& layout);

// The gradient of a shard at an element, in [-1, 1), with all bits of the fraction in use.
float gradient_of(std::int64_t shard, std::int64_t element, int step);

// One step of this rank with the gradients above.
std::span<float> run_step(Communicator& comm, GradientReducer& reducer, const ReducerLayout& layout,
                          int step);

// The sum of all shards along the tree, written anew by its definition.
std::vector<float> expected_sum(const ReducerLayout& layout, int step);

// Lets messages be no longer than `bytes`.
void limit_messages(Communicator& comm, std::size_t bytes);

// Where a communicator writes its bucket.
const Progress& progress_of(Communicator& comm);

}  // namespace annulus::testing
