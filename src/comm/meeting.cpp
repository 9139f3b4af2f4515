// SPDX-License-Identifier: Apache-2.0
#include "comm/meeting.h"

#include <atomic>
#include <memory>
#include <tuple>

#include "core/dtype.h"

namespace annulus {

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

// What a rank shows to its neighbours.
struct Meeting::Board {
  Word entered;
  std::atomic<int> waits_for{-1};  // a rank of another node
  Signature mine;
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

Meeting::Meeting(Group& group) : group_(group), segment_(group.allocate(sizeof(Board))) {
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

void Meeting::meet(const Task& task, const Signature& mine) {
  ++count_;
  const int me = group_.roster().local_rank();
  board(me).mine = mine;
  board(me).entered.store(count_);
  if (me == 0) {
    lead(task);
  } else {
    follow(task);
  }
  const Verdict& verdict = board(0).verdict;
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
  group_.wait_for_node(task, count_, [&](int local) -> Word& { return board(local).entered; });
  Verdict verdict = compare_in_node();
  compare_across(task, verdict);
  board(0).verdict = verdict;
  board(0).released.store(count_);
}

void Meeting::follow(const Task& task) {
  group_.wait_for_word(task, board(0).released, count_, [&] {
    const std::string late =
        group_.late_in_node(count_, [&](int local) -> Word& { return board(local).entered; });
    return late.empty() ? group_.roster().name(group_.to_blame(0)) : late;
  });
}

Meeting::Verdict Meeting::compare_in_node() const {
  const auto& ranks = group_.roster().neighbours();
  const auto alone = [&](std::size_t local) {
    const Signature& mine = board(static_cast<int>(local)).mine;
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
