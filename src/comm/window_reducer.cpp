// SPDX-License-Identifier: Apache-2.0
#include "comm/window_reducer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>

#include "comm/communicator.h"

namespace annulus {
namespace {

constexpr std::size_t flags_bytes = 4096;  // the gradients begin on a page of their own

int bits_of(std::int64_t number) {
  return std::popcount(static_cast<std::uint64_t>(number));
}

// Buffers on the stack while shard i is computed: one for each merged block before it, and its own.
int levels_for(std::int64_t shards) {
  int levels = 1;
  for (std::int64_t i = 0; i < shards; ++i) levels = std::max(levels, bits_of(i) + 1);
  return levels;
}

std::uint64_t hash_of_layout(const ReducerLayout& layout) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a, a 64-bit word at a time
  const auto add = [&](std::int64_t number) {
    hash = (hash ^ static_cast<std::uint64_t>(number)) * 0x100000001b3ULL;
  };
  for (const std::int64_t tensor : layout.tensors) add(tensor);
  add(layout.tail);
  add(layout.shards);
  add(layout.bucket_bytes);
  add(layout.last_bytes);
  return hash;
}

const Arithmetic& float_sum() {
  static const Arithmetic arithmetic = arithmetic_of(DType::f32, ReduceOp::sum);
  return arithmetic;
}

void add_to(float* sum, const float* more, std::int64_t count) {
  auto* to = reinterpret_cast<std::byte*>(sum);
  float_sum().combine(to, to, reinterpret_cast<const std::byte*>(more), count);
}

}  // namespace

// How far a rank has come, as first_ + number of the bucket + 1.
struct WindowReducer::Flags {
  alignas(64) Word ready;     // its gradients lie in its window
  alignas(64) Word reduced;   // its slice is the sum over all ranks
  alignas(64) Word consumed;  // it needs no other window any more
};

WindowReducer::WindowReducer(std::shared_ptr<Group> group, const ReducerLayout& layout)
    : group_(std::move(group)),
      buckets_(plan_buckets(layout.tensors, layout.tail, layout.bucket_bytes, layout.last_bytes)),
      layout_hash_(hash_of_layout(layout)),
      solo_(group_->roster().size() == 1),
      one_node_(group_->roster().nodes() == 1) {
  const Roster& roster = group_->roster();
  require(roster.consecutive(), ErrorKind::bug, "the ranks of a node are not consecutive");
  leaders_ = !roster.even();
  std::int64_t offset = 0;
  std::size_t bucket = 0;
  for (const std::int64_t tensor : layout.tensors) {
    offset += tensor;
    while (bucket < buckets_.size() && buckets_[bucket].end <= offset) ++bucket;
    complete_after_.push_back(static_cast<std::int64_t>(bucket));
  }
  elements_ = offset + layout.tail;
  plan(layout.shards);
  reserve();
}

void WindowReducer::plan(std::int64_t shards) {
  const Roster& roster = group_->roster();
  ReducePlan plan = plan_reduction(shards, roster.ranks_by_node);
  shards_ = plan.rank_shards[static_cast<std::size_t>(roster.rank)];
  in_node_ = std::move(plan.in_node[static_cast<std::size_t>(roster.node())]);
  const int local = roster.local_rank();
  if (roster.nodes() == 1 || (leaders_ && local != 0)) return;
  std::vector<int> members;
  for (const auto& ranks : roster.ranks_on)
    members.push_back(ranks[static_cast<std::size_t>(local)]);
  across_ = std::make_unique<Exchange>(*group_, std::move(members), roster.node(),
                                       std::move(plan.across), plan.pairs);
}

void WindowReducer::reserve() {
  const int me = group_->roster().local_rank();
  const std::size_t data_bytes = static_cast<std::size_t>(elements_) * sizeof(float);
  segment_ = group_->allocate(flags_bytes + data_bytes);
  std::construct_at(&flags(me));
  for (int i = 1; i < levels_for(shards_.count()); ++i) {
    levels_.push_back(Buffer::host(data_bytes));
  }
  inputs_.resize(static_cast<std::size_t>(group_->roster().local_size()));
  std::int64_t most = 0;
  for (const Bucket& bucket : buckets_) most = std::max(most, slice_of(bucket, me).count());
  if (across_) across_->reserve(most * static_cast<std::int64_t>(sizeof(float)));
}

WindowReducer::~WindowReducer() {
  if (state_ == State::idle || solo_) return;
  group_->cancel();
  try {
    group_->wait_for_job();
  } catch (const std::exception&) {
    state_ = State::idle;  // it was given up, as asked
  }
}

void WindowReducer::connect(const Task& task) {
  group_->connect(*segment_, task);
}

std::size_t WindowReducer::bytes() const {
  std::size_t total = segment_->of(group_->roster().local_rank()).size();
  for (const Buffer& buffer : levels_) total += buffer.bytes();
  return total;
}

// ------------------------------------------------------------ trainer's thread

void WindowReducer::expect(State state, const char* call) const {
  require(state_ == state, ErrorKind::bug, "{} of a gradient sum is called out of order", call);
}

float* WindowReducer::level(int number) const {
  return number == 0 ? window(group_->roster().local_rank())
                     : levels_[static_cast<std::size_t>(number - 1)].as<float>();
}

void WindowReducer::begin_step() {
  expect(State::idle, "begin_step");
  first_ = complete_.load();
  shard_ = 0;
  completed_ = 0;
  if (!solo_) group_->start(job_);
  state_ = State::step;
  if (shards_.count() == 0) complete(static_cast<std::int64_t>(buckets_.size()));
}

std::span<float> WindowReducer::begin_shard() {
  expect(State::step, "begin_shard");
  require(shard_ < shards_.count(), ErrorKind::bug, "this rank has {} shards, not more",
          shards_.count());
  state_ = State::shard;
  tensors_ready_ = 0;
  return {level(bits_of(shard_)), static_cast<std::size_t>(elements_)};
}

void WindowReducer::tensor_ready(int tensor) {
  expect(State::shard, "tensor_ready");
  require(tensor >= tensors_ready_ && tensor < static_cast<int>(complete_after_.size()),
          ErrorKind::bug, "tensor {} of {} is ready after {}", tensor, complete_after_.size(),
          tensors_ready_ - 1);
  tensors_ready_ = tensor + 1;
  if (shard_ + 1 == shards_.count()) complete(complete_after_[static_cast<std::size_t>(tensor)]);
}

void WindowReducer::end_shard() {
  expect(State::shard, "end_shard");
  if (shard_ + 1 == shards_.count()) {
    complete(static_cast<std::int64_t>(buckets_.size()));
  } else {
    merge_finished_shard();
  }
  ++shard_;
  state_ = State::step;
}

// A binary counter: each bit that carries merges two blocks of equally many shards.
void WindowReducer::merge_finished_shard() {
  int top = bits_of(shard_);
  for (std::int64_t carry = shard_; (carry & 1) != 0; carry >>= 1, --top) {
    add_to(level(top - 1), level(top), elements_);
  }
}

void WindowReducer::complete(std::int64_t buckets) {
  if (buckets <= completed_) return;
  if (solo_) {
    for (std::int64_t b = completed_; b < buckets; ++b) {
      merge_last_shard(buckets_[static_cast<std::size_t>(b)]);
    }
  }
  completed_ = buckets;
  complete_.store(first_ + static_cast<std::uint32_t>(buckets));
}

std::span<float> WindowReducer::finish() {
  expect(State::step, "finish");
  require_equal(shards_.count(), shard_, "shards of this rank in a step");
  state_ = State::idle;
  if (!solo_) group_->wait_for_job();
  return {level(0), static_cast<std::size_t>(elements_)};
}

// ------------------------------------------------------------ communication thread

WindowReducer::Flags& WindowReducer::flags(int local_rank) const {
  return *reinterpret_cast<Flags*>(segment_->of(local_rank).data());
}

float* WindowReducer::window(int local_rank) const {
  return reinterpret_cast<float*>(segment_->of(local_rank).data() + flags_bytes);
}

Bucket WindowReducer::slice_of(const Bucket& bucket, int local_rank) const {
  if (leaders_) return local_rank == 0 ? bucket : Bucket{bucket.begin, bucket.begin};
  const Span64 share = share_of(bucket.count(), local_rank, group_->roster().local_size());
  return {bucket.begin + share.begin, bucket.begin + share.end};
}

void WindowReducer::reduce_all() {
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const std::uint32_t sequence = first_ + static_cast<std::uint32_t>(b) + 1;
    const Task own{"backward", Deadline(), static_cast<int>(b)};
    group_->wait_for_word(own, complete_, sequence, [] { return std::string(); });
    group_->progress().bucket = static_cast<int>(b);
    const TraceRange range(group_->progress().trace, Trace::communication, "bucket", "reduce",
                           static_cast<std::int64_t>(b));
    reduce(b, sequence);
  }
  group_->progress().bucket = -1;
  // The caller may use its window only when nobody reads or writes it any more.
  group_->wait_for_node(group_->task("end of the gradient sum"),
                        first_ + static_cast<std::uint32_t>(buckets_.size()),
                        [&](int local) -> Word& { return flags(local).consumed; });
}

void WindowReducer::reduce(std::size_t number, std::uint32_t sequence) {
  const Bucket& bucket = buckets_[number];
  const Task task = group_->task("gradient sum", static_cast<int>(number));
  Flags& mine = flags(group_->roster().local_rank());
  merge_last_shard(bucket);
  mine.ready.store(sequence);
  group_->wait_for_node(task, sequence, [&](int local) -> Word& { return flags(local).ready; });
  const Bucket slice = slice_of(bucket, group_->roster().local_rank());
  if (one_node_) {
    sum_into_all_windows(slice);
    mine.consumed.store(sequence);
    return;
  }
  sum_in_node(slice);
  if (across_) {
    const std::span<float> part(level(0) + slice.begin, static_cast<std::size_t>(slice.count()));
    across_->all_reduce(task, float_sum(), std::as_writable_bytes(part));
  }
  mine.reduced.store(sequence);
  copy_slices(task, bucket, sequence);
  mine.consumed.store(sequence);
}

// Level by level from the top, which is what the counter does with the last shard and leaves over.
// In blocks, so that a sum is still in the cache when it is added to the next.
void WindowReducer::merge_last_shard(const Bucket& bucket) {
  constexpr std::int64_t block = 4096;
  if (shards_.count() < 2) return;
  const int top = bits_of(shards_.count() - 1);
  for (std::int64_t i = bucket.begin; i < bucket.end; i += block) {
    const std::int64_t count = std::min(block, bucket.end - i);
    for (int t = top; t > 0; --t) add_to(level(t - 1) + i, level(t) + i, count);
  }
}

void WindowReducer::sum_in_node(const Bucket& slice) {
  float* to = level(0) + slice.begin;
  if (in_node_.sources().empty()) return fill_with_nothing(to, slice.count());
  for (const int local : in_node_.sources()) {
    inputs_[static_cast<std::size_t>(local)] =
        reinterpret_cast<const std::byte*>(window(local) + slice.begin);
  }
  in_node_.run(float_sum(), inputs_, reinterpret_cast<std::byte*>(to), slice.count());
}

void WindowReducer::sum_into_all_windows(const Bucket& slice) {
  constexpr std::int64_t block = 2048;
  const int size = group_->roster().local_size();
  const int me = group_->roster().local_rank();
  for (std::int64_t i = slice.begin; i < slice.end; i += block) {
    const Bucket part{i, std::min(i + block, slice.end)};
    sum_in_node(part);
    for (int step = 1; step < size; ++step) {
      std::memcpy(window((me + step) % size) + part.begin, level(0) + part.begin,
                  static_cast<std::size_t>(part.count()) * sizeof(float));
    }
  }
}

void WindowReducer::copy_slices(const Task& task, const Bucket& bucket, std::uint32_t sequence) {
  const int size = group_->roster().local_size();
  const int me = group_->roster().local_rank();
  const auto reduced = [&](int local) -> Word& { return flags(local).reduced; };
  for (int step = 1; step < size; ++step) {
    const int local = (me + step) % size;
    const Bucket slice = slice_of(bucket, local);
    if (slice.count() == 0) continue;
    group_->wait_for_word(task, reduced(local), sequence,
                          [&] { return group_->late_in_node(sequence, reduced); });
    std::memcpy(level(0) + slice.begin, window(local) + slice.begin,
                static_cast<std::size_t>(slice.count()) * sizeof(float));
  }
}

}  // namespace annulus
