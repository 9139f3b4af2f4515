// SPDX-License-Identifier: Apache-2.0
#include "comm/meeting.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <tuple>

#include <sys/sysinfo.h>

#include "core/dtype.h"

namespace annulus {
namespace {

// Looks between which a waiting thread keeps its core for itself; together some microseconds.
constexpr int busy_looks = 100;

void rest_the_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

// The calls of some ranks: the least and the greatest. They are equal if all are.
struct Meeting::Verdict {
  Signature least;
  Signature greatest;
  int least_rank = 0;
  int greatest_rank = 0;

  // Of equal calls the lowest rank counts, so that all ranks come to the same words.
  void add(const Verdict& other) {
    if (std::tie(other.least, other.least_rank) < std::tie(least, least_rank)) {
      least = other.least;
      least_rank = other.least_rank;
    }
    if (other.greatest > greatest ||
        (other.greatest == greatest && other.greatest_rank < greatest_rank)) {
      greatest = other.greatest;
      greatest_rank = other.greatest_rank;
    }
  }
};

// What a rank brings to a meeting. What it takes to come, and a few numbers, is one cache line.
struct Meeting::Slot {
  alignas(64) Word entered;
  Signature mine;
  alignas(32) std::array<std::byte, most_bytes> data;
};

// What a rank shows to its neighbours.
struct Meeting::Board {
  // In turns: nobody comes to the next but one meeting before all have left this one.
  std::array<Slot, 2> slots;
  std::atomic<int> waits_for{-1};  // a rank of another node
  // The rest is the node's first rank's.
  Word released;
  Verdict verdict;
  std::atomic<bool> failed{false};
};

const char* name(Call call) {
  switch (call) {
    case Call::barrier:
      return "barrier";
    case Call::all_reduce:
      return "all_reduce";
    case Call::reduce_scatter:
      return "reduce_scatter";
    case Call::all_gather:
      return "all_gather";
    case Call::broadcast:
      return "broadcast";
    case Call::split:
      return "split";
    case Call::make_reducer:
      return "make_reducer";
  }
  return "unknown";
}

std::string to_string(const Signature& signature) {
  const char* call = name(signature.call);
  switch (signature.call) {
    case Call::barrier:
    case Call::split:
      return call;
    case Call::make_reducer:
      return fmt::format("{} with layout {:016x}", call, signature.bytes);
    case Call::broadcast:
      return fmt::format("{} of {} bytes of {} from rank {}", call, signature.bytes,
                         name(static_cast<DType>(signature.dtype)), signature.detail);
    default:
      return fmt::format("{} ({}) of {} bytes of {}", call, signature.detail, signature.bytes,
                         name(static_cast<DType>(signature.dtype)));
  }
}

Meeting::Meeting(Group& group)
    : group_(group),
      segment_(group.allocate(sizeof(Board))),
      crowded_(group.roster().local_size() > get_nprocs()) {
  std::construct_at(reinterpret_cast<Board*>(segment_->of(group.roster().local_rank()).data()));
}

Meeting::~Meeting() {
  group_.set_signs({});
}

void Meeting::connect(const Task& task) {
  group_.connect(*segment_, task);
  std::vector<std::atomic<int>*> signs(group_.roster().neighbours().size());
  for (std::size_t local = 0; local < signs.size(); ++local) {
    signs[local] = &board(static_cast<int>(local)).waits_for;
  }
  group_.set_signs(std::move(signs));
}

Meeting::Board& Meeting::board(int local_rank) const {
  return *reinterpret_cast<Board*>(segment_->of(local_rank).data());
}

Meeting::Slot& Meeting::slot(int local_rank) const {
  return board(local_rank).slots[count_ % 2];
}

const std::byte* Meeting::data_of(int local_rank) const {
  return slot(local_rank).data.data();
}

void Meeting::meet(const Task& task, const Signature& mine) {
  enter(mine, {});
  if (group_.roster().local_rank() == 0) {
    lead(task);
  } else {
    follow(task);
  }
  require_same(board(0).verdict);
}

void Meeting::meet_in_node(const Signature& mine, std::span<const std::byte> data) {
  group_.with_origin([&] {
    group_.worker()->require_idle();
    enter(mine, data);
    if (!group_.usable() || !all_come_soon()) {
      group_.run([&] {
        group_.wait_for_node(group_.task(name(mine.call)), count_,
                             [&](int local) -> Word& { return slot(local).entered; });
      });
    }
    if (!all_call_the_same()) require_same(compare_in_node());
  });
}

void Meeting::enter(const Signature& mine, std::span<const std::byte> data) {
  ++count_;
  Slot& own = slot(group_.roster().local_rank());
  own.mine = mine;
  if (!data.empty()) std::memcpy(own.data.data(), data.data(), data.size());
  own.entered.store(count_);
}

// Whether the others come while this thread can well keep its core.
bool Meeting::all_come_soon() const {
  const int size = group_.roster().local_size();
  int here = 0;
  const auto done = [&] {
    while (here < size && slot(here).entered.reached(count_)) ++here;
    return here == size;
  };
  for (int look = crowded_ ? busy_looks : 0; look < busy_looks; ++look) {
    if (done()) return true;
    rest_the_core();
  }
  const auto start = Deadline::Clock::now();
  while (!done()) {
    if (Deadline::Clock::now() - start > spin_time) return false;
    std::this_thread::yield();
  }
  return true;
}

bool Meeting::all_call_the_same() const {
  const Signature& first = slot(0).mine;
  for (int local = 1; local < group_.roster().local_size(); ++local) {
    if (slot(local).mine != first) return false;
  }
  return true;
}

void Meeting::require_same(const Verdict& verdict) const {
  if (verdict.least == verdict.greatest) return;
  const auto said = [&](int rank, const Signature& signature) {
    return fmt::format("{} by {}", to_string(signature), group_.roster().name(rank));
  };
  throw Error(ErrorKind::bug, "ranks call different collectives")
      .values(said(verdict.least_rank, verdict.least),
              said(verdict.greatest_rank, verdict.greatest))
      .agreed(verdict.least_rank, group_.roster().host_of(verdict.least_rank));
}

bool Meeting::first_to_fail() {
  return !board(0).failed.exchange(true);
}

void Meeting::lead(const Task& task) {
  group_.wait_for_node(task, count_, [&](int local) -> Word& { return slot(local).entered; });
  Verdict verdict = compare_in_node();
  compare_across(task, verdict);
  board(0).verdict = verdict;
  board(0).released.store(count_);
}

void Meeting::follow(const Task& task) {
  group_.wait_for_word(task, board(0).released, count_, [&] {
    const std::string late =
        group_.late_in_node(count_, [&](int local) -> Word& { return slot(local).entered; });
    return late.empty() ? group_.roster().name(group_.to_blame(0)) : late;
  });
}

Meeting::Verdict Meeting::compare_in_node() const {
  const auto& ranks = group_.roster().neighbours();
  const auto alone = [&](std::size_t local) {
    const Signature& mine = slot(static_cast<int>(local)).mine;
    return Verdict{mine, mine, ranks[local], ranks[local]};
  };
  Verdict verdict = alone(0);
  for (std::size_t local = 1; local < ranks.size(); ++local) verdict.add(alone(local));
  return verdict;
}

// Dissemination: after round k a node knows of the 2^k nodes before it. Hearing twice of one does
// no harm to a least and a greatest.
void Meeting::compare_across(const Task& task, Verdict& verdict) {
  const Roster& roster = group_.roster();
  const auto leader = [&](int node) {
    return roster.ranks_on[static_cast<std::size_t>(node % roster.nodes())].front();
  };
  for (int step = 1; step < roster.nodes(); step *= 2) {
    const int from = leader(roster.node() + roster.nodes() - step);
    Verdict theirs;
    group_.send(leader(roster.node() + step), std::as_bytes(std::span(&verdict, 1)));
    group_.receive(from, std::as_writable_bytes(std::span(&theirs, 1)));
    group_.finish_messages(task);
    verdict.add(theirs);
  }
}

}  // namespace annulus
