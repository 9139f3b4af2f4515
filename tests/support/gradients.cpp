// SPDX-License-Identifier: Apache-2.0
#include "support/gradients.h"

#include <numeric>

#include "comm/group_communicator.h"

namespace annulus::testing {
namespace {

float sum_of(std::int64_t begin, std::int64_t end, std::int64_t element, int step) {
  if (end - begin == 1) return gradient_of(begin, element, step);
  std::int64_t left = 1;
  while (2 * left < end - begin) left *= 2;
  return sum_of(begin, begin + left, element, step) + sum_of(begin + left, end, element, step);
}

}  // namespace

ReducerLayout small_layout(std::int64_t shards) {
  ReducerLayout layout;
  layout.tensors = {100, 7, 0, 120, 33, 1, 64};
  layout.tail = 5;
  layout.shards = shards;
  layout.bucket_bytes = 400;
  layout.last_bytes = 300;
  return layout;
}

std::int64_t elements_of(const ReducerLayout& layout) {
  return std::accumulate(layout.tensors.begin(), layout.tensors.end(), layout.tail);
}

float gradient_of(std::int64_t shard, std::int64_t element, int step) {
  auto bits = static_cast<std::uint64_t>(shard * 1000003 + element * 7919 + step * 104729 + 1);
  bits *= 0x9e3779b97f4a7c15ULL;
  bits ^= bits >> 29;
  bits *= 0xbf58476d1ce4e5b9ULL;
  return static_cast<float>(bits >> 40) * 0x1p-23F - 1.0F;
}

std::span<float> run_step(Communicator& comm, GradientReducer& reducer, const ReducerLayout& layout,
                          int step) {
  const Span64 shards = share_of(layout.shards, comm.rank(), comm.size());
  reducer.begin_step();
  for (std::int64_t shard = shards.begin; shard < shards.end; ++shard) {
    const auto gradients = reducer.begin_shard();
    std::int64_t element = 0;
    const auto write = [&](std::int64_t count) {
      for (const std::int64_t end = element + count; element < end; ++element) {
        gradients[static_cast<std::size_t>(element)] = gradient_of(shard, element, step);
      }
    };
    for (std::size_t tensor = 0; tensor < layout.tensors.size(); ++tensor) {
      write(layout.tensors[tensor]);
      reducer.tensor_ready(static_cast<int>(tensor));
    }
    write(layout.tail);
    reducer.end_shard();
  }
  return reducer.finish();
}

std::vector<float> expected_sum(const ReducerLayout& layout, int step) {
  std::vector<float> sum;
  for (std::int64_t element = 0; element < elements_of(layout); ++element) {
    sum.push_back(sum_of(0, layout.shards, element, step));
  }
  return sum;
}

void limit_messages(Communicator& comm, std::size_t bytes) {
  dynamic_cast<GroupCommunicator&>(comm).group().set_message_limit(bytes);
}

const Progress& progress_of(Communicator& comm) {
  return dynamic_cast<GroupCommunicator&>(comm).group().progress();
}

}  // namespace annulus::testing
