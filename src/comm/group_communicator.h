// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "comm/exchange.h"
#include "comm/group.h"
#include "comm/meeting.h"

namespace annulus {

// The communicator of all backends: the algorithms over a Group's messages and shared memory.
class GroupCommunicator final : public Communicator {
 public:
  // Collective: ranks with neighbours exchange shared memory here.
  explicit GroupCommunicator(std::shared_ptr<Group> group);

  int rank() const override { return roster().rank; }
  int size() const override { return roster().size(); }
  int node() const override { return roster().node(); }
  int local_rank() const override { return roster().local_rank(); }
  int local_size() const override { return roster().local_size(); }
  const std::vector<std::string>& hosts() const override { return roster().hosts; }
  const std::vector<int>& ranks_by_node() const override { return roster().ranks_by_node; }

  void all_reduce(const TensorView& data, ReduceOp op) override;
  void reduce_scatter(const TensorView& data, const TensorView& slice) override;
  void all_gather(const TensorView& mine, const TensorView& all) override;
  void broadcast(const TensorView& data, int root) override;
  void barrier() override;
  std::unique_ptr<Communicator> split(int color, int key) override;

  void set_timeout(double seconds) override { group_->set_timeout(seconds); }
  std::unique_ptr<GradientReducer> make_reducer(const ReducerLayout& layout) override;
  std::int64_t bytes_between_hosts() const override { return group_->bytes_between_nodes(); }
  bool first_to_fail() override { return !meeting_ || meeting_->first_to_fail(); }
  [[noreturn]] void abort(int code) override;

  // For tests.
  Group& group() { return *group_; }

 private:
  const Roster& roster() const { return group_->roster(); }
  // Meets all ranks, then does `move(task)` on the communication thread.
  template <class Move>
  void collective(const Signature& signature, Move&& move);
  bool one_node() const { return roster().nodes() == 1; }
  // What all ranks of one node have brought to their meeting becomes one.
  void combine_in_node(const Arithmetic& arithmetic, std::span<std::byte> data);

  std::shared_ptr<Group> group_;
  std::unique_ptr<Meeting> meeting_;
  SumOrder order_;  // the tree over all ranks, a leaf each
  std::unique_ptr<Exchange> exchange_;
  std::vector<const std::byte*> inputs_;
};

}  // namespace annulus
