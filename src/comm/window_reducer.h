// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/exchange.h"
#include "comm/gradient_reducer.h"
#include "comm/group.h"
#include "comm/reduce_plan.h"

namespace annulus {

// The reducer over memory shared in the node. A bucket goes in three moves, all on the
// communication thread: each local rank sums its slice of the bucket over its neighbours' windows;
// ranks with the same local number combine that slice across nodes; everybody copies the finished
// slices. Where nodes have different numbers of ranks, the node's first rank takes the whole bucket
// for its slice. On a single node there is one move: each rank sums its slice, which no other rank
// touches meanwhile, and writes it into all windows while it is in the cache.
class WindowReducer final : public GradientReducer {
 public:
  // From the trainer's thread: reserves the memory. Error (resource).
  WindowReducer(std::shared_ptr<Group> group, const ReducerLayout& layout);
  ~WindowReducer() override;
  WindowReducer(const WindowReducer&) = delete;
  WindowReducer& operator=(const WindowReducer&) = delete;

  // Equal for equal layouts.
  std::uint64_t layout_hash() const { return layout_hash_; }
  // Collective, on the communication thread: makes the neighbours' windows accessible.
  void connect(const Task& task);

  void begin_step() override;
  std::span<float> begin_shard() override;
  void tensor_ready(int tensor) override;
  void end_shard() override;
  std::span<float> finish() override;
  const std::vector<Bucket>& buckets() const override { return buckets_; }
  std::size_t bytes() const override;

 private:
  enum class State { idle, step, shard };
  struct Flags;
  struct StepJob {
    WindowReducer* reducer;
    void operator()() { reducer->reduce_all(); }
  };

  // Trainer's thread.
  void plan(std::int64_t shards);
  void reserve();
  void expect(State state, const char* call) const;
  float* level(int number) const;
  void merge_finished_shard();
  void complete(std::int64_t buckets);

  // Communication thread (with one rank: trainer's).
  void reduce_all();
  void reduce(std::size_t number, std::uint32_t sequence);
  void merge_last_shard(const Bucket& bucket);
  void sum_in_node(const Bucket& slice);
  void sum_into_all_windows(const Bucket& slice);
  void copy_slices(const Task& task, const Bucket& bucket, std::uint32_t sequence);
  Bucket slice_of(const Bucket& bucket, int local_rank) const;
  Flags& flags(int local_rank) const;
  float* window(int local_rank) const;

  std::shared_ptr<Group> group_;
  std::vector<Bucket> buckets_;
  std::vector<std::int64_t> complete_after_;  // by tensor: the buckets that are complete with it
  std::uint64_t layout_hash_ = 0;
  std::int64_t elements_ = 0;
  Span64 shards_;  // of this rank
  bool solo_;
  bool one_node_;
  bool leaders_;  // nodes differ: their first ranks do it all
  SumOrder in_node_;
  std::unique_ptr<Exchange> across_;  // where this rank has a part in it

  std::unique_ptr<Segment> segment_;
  std::vector<Buffer> levels_;  // the stack above the window
  std::vector<const std::byte*> inputs_;

  State state_ = State::idle;
  std::int64_t shard_ = 0;      // own shards begun in this step
  int tensors_ready_ = 0;       // of the current shard
  std::int64_t completed_ = 0;  // buckets complete in this step
  std::uint32_t first_ = 0;     // flags count on from here in this step
  Word complete_;               // first_ + completed_
  StepJob job_{this};
};

}  // namespace annulus
