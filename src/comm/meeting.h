// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "comm/group.h"

namespace annulus {

enum class Call : std::uint32_t {
  barrier,
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  split,
  make_reducer,
};

const char* name(Call call);

// What a rank calls, to compare.
struct Signature {
  Call call = Call::barrier;
  std::uint32_t dtype = 0;
  std::uint32_t detail = 0;  // operation or root
  std::uint32_t unused = 0;
  std::uint64_t bytes = 0;

  auto operator<=>(const Signature&) const = default;  // NOLINT(modernize-use-nullptr): its bug
};

std::string to_string(const Signature& signature);

// Where all ranks meet before a collective: none goes on before all have come, and all see whether
// they came for the same. In the node through shared words, across nodes by the nodes' first ranks.
// So whoever is late is named exactly in the node, and by its node's first rank elsewhere.
class Meeting {
 public:
  // Bytes that a rank can bring along for its neighbours.
  static constexpr std::size_t most_bytes = 4096;

  explicit Meeting(Group& group);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
  // Collective, on the communication thread; before it nobody can meet.
  void connect(const Task& task);

  // Error (bug) on all ranks, with two of the calls, where not all are equal. On the communication
  // thread.
  void meet(const Task& task, const Signature& mine);
  // The same from the trainer's thread, where all ranks are on one node: whoever comes at about the
  // same time as the others waits for no other thread. The neighbours can read `data`.
  void meet_in_node(const Signature& mine, std::span<const std::byte> data = {});
  // What a neighbour brought along to the last meeting, of as many bytes as its call was for; stays
  // until the next one.
  const std::byte* data_of(int local_rank) const;
  // Whether no other rank of the node has asked before. From any thread.
  bool first_to_fail();

 private:
  struct Slot;
  struct Board;
  struct Verdict;
  Board& board(int local_rank) const;
  Slot& slot(int local_rank) const;
  void enter(const Signature& mine, std::span<const std::byte> data);
  bool all_come_soon() const;
  bool all_call_the_same() const;
  void require_same(const Verdict& verdict) const;
  Verdict compare_in_node() const;
  void compare_across(const Task& task, Verdict& verdict);
  void lead(const Task& task);
  void follow(const Task& task);

  Group& group_;
  std::unique_ptr<Segment> segment_;
  bool crowded_;  // more ranks than cores: whoever waits is in the way
  std::uint32_t count_ = 0;
};

}  // namespace annulus
