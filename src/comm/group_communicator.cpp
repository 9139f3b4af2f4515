// SPDX-License-Identifier: Apache-2.0
#include "comm/group_communicator.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <tuple>

#include <unistd.h>

#include "comm/agree.h"
#include "comm/window_reducer.h"

namespace annulus {
namespace {

std::span<std::byte> bytes_of(const TensorView& view) {
  require(view.device == DeviceKind::cpu, ErrorKind::bug, "ranks exchange host memory only");
  require(view.dtype != DType::f16 && view.dtype != DType::bf16, ErrorKind::bug,
          "ranks do not exchange tensors of {}", name(view.dtype));
  return {static_cast<std::byte*>(view.data), view.bytes()};
}

Signature signature_of(Call call, const TensorView& view, std::uint32_t detail = 0) {
  return {call, static_cast<std::uint32_t>(view.dtype), detail, 0, view.bytes()};
}

// One slice and the whole of `size` of them must fit.
void require_slices(const TensorView& slice, const TensorView& whole, int size) {
  require_equal(name(slice.dtype), std::string(name(whole.dtype)),
                "types of a slice and the whole");
  require_equal(slice.elements() * size, whole.elements(), "elements of all slices");
}

// The tree over ranks themselves, a leaf each.
SumOrder order_of_all(int size) {
  std::vector<Partial> leaves;
  leaves.reserve(static_cast<std::size_t>(size));
  for (int member = 0; member < size; ++member) leaves.push_back({member, {member, member + 1}});
  return {leaves, size};
}

Exchange exchange_of_all(Group& group) {
  const int size = group.roster().size();
  std::vector<int> members(static_cast<std::size_t>(size));
  std::iota(members.begin(), members.end(), 0);
  const bool pairs = std::has_single_bit(static_cast<unsigned>(size));
  return {group, std::move(members), group.roster().rank, order_of_all(size), pairs};
}

}  // namespace

GroupCommunicator::GroupCommunicator(std::shared_ptr<Group> group) : group_(std::move(group)) {
  if (size() == 1) return;
  meeting_ = std::make_unique<Meeting>(*group_);
  order_ = order_of_all(size());
  exchange_ = std::make_unique<Exchange>(exchange_of_all(*group_));
  inputs_.resize(static_cast<std::size_t>(size()));
  group_->run([&] {
    group_->progress().enter(Phase::segments);
    meeting_->connect(group_->task("the start of the ranks"));
  });
}

template <class Move>
void GroupCommunicator::collective(const Signature& signature, Move&& move) {
  if (one_node()) meeting_->meet_in_node(signature);
  group_->run([&] {
    const Task task = group_->task(name(signature.call));
    if (!one_node()) meeting_->meet(task, signature);
    move(task);
  });
}

void GroupCommunicator::combine_in_node(const Arithmetic& arithmetic, std::span<std::byte> data) {
  for (int local = 0; local < size(); ++local) {
    inputs_[static_cast<std::size_t>(local)] = meeting_->data_of(local);
  }
  order_.run(arithmetic, inputs_, data.data(),
             static_cast<std::int64_t>(data.size()) / arithmetic.element);
}

void GroupCommunicator::all_reduce(const TensorView& data, ReduceOp op) {
  const Arithmetic arithmetic = arithmetic_of(data.dtype, op);
  const auto bytes = bytes_of(data);
  if (size() == 1) return;
  const Signature signature = signature_of(Call::all_reduce, data, static_cast<std::uint32_t>(op));
  if (one_node() && bytes.size() <= Meeting::most_bytes) {
    meeting_->meet_in_node(signature, bytes);
    combine_in_node(arithmetic, bytes);
    return;
  }
  collective(signature, [&](const Task& task) { exchange_->all_reduce(task, arithmetic, bytes); });
}

void GroupCommunicator::reduce_scatter(const TensorView& data, const TensorView& slice) {
  const Arithmetic arithmetic = arithmetic_of(data.dtype, ReduceOp::sum);
  require_slices(slice, data, size());
  const auto from = bytes_of(data);
  const auto to = bytes_of(slice);
  if (size() == 1) {
    if (!to.empty()) std::memmove(to.data(), from.data(), to.size());
    return;
  }
  collective(signature_of(Call::reduce_scatter, data),
             [&](const Task& task) { exchange_->reduce_scatter(task, arithmetic, from, to); });
}

void GroupCommunicator::all_gather(const TensorView& mine, const TensorView& all) {
  require_slices(mine, all, size());
  const auto from = bytes_of(mine);
  const auto to = bytes_of(all);
  if (size() == 1) {
    if (!to.empty()) std::memmove(to.data(), from.data(), to.size());
    return;
  }
  collective(signature_of(Call::all_gather, all),
             [&](const Task& task) { annulus::all_gather(*group_, task, from, to); });
}

void GroupCommunicator::broadcast(const TensorView& data, int root) {
  require(root >= 0 && root < size(), ErrorKind::bug, "broadcast from rank {} of {}", root, size());
  const auto bytes = bytes_of(data);
  if (size() == 1) return;
  collective(signature_of(Call::broadcast, data, static_cast<std::uint32_t>(root)),
             [&](const Task& task) { annulus::broadcast(*group_, task, bytes, root); });
}

void GroupCommunicator::barrier() {
  if (size() == 1) return;
  if (one_node()) return meeting_->meet_in_node({Call::barrier});
  collective({Call::barrier}, [](const Task&) {});
}

std::unique_ptr<Communicator> GroupCommunicator::split(int color, int key) {
  struct Wish {
    int color, key;
  };
  const Wish mine{color, key};
  std::vector<Wish> wishes(static_cast<std::size_t>(size()), mine);
  std::vector<int> members;
  std::unique_ptr<Transport> transport;
  int me = 0;
  const auto choose = [&] {
    for (int rank = 0; rank < size(); ++rank) {
      if (wishes[static_cast<std::size_t>(rank)].color == color) members.push_back(rank);
    }
    std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
      return wishes[static_cast<std::size_t>(a)].key < wishes[static_cast<std::size_t>(b)].key;
    });
    me = static_cast<int>(std::find(members.begin(), members.end(), rank()) - members.begin());
  };
  if (size() == 1) {
    choose();
  } else {
    collective({Call::split}, [&](const Task& task) {
      annulus::all_gather(*group_, task, std::as_bytes(std::span(&mine, 1)),
                          std::as_writable_bytes(std::span(wishes)));
      choose();
      transport = group_->transport().split(members, me);
    });
  }
  std::vector<int> nodes;
  std::vector<std::string> names;
  for (const int member : members) {
    nodes.push_back(roster().node_of[static_cast<std::size_t>(member)]);
    names.push_back(hosts()[static_cast<std::size_t>(nodes.back())]);
  }
  auto group = std::make_shared<Group>(make_roster(me, nodes, names), group_->worker(),
                                       std::move(transport), group_->progress());
  group->set_timeout(group_->timeout());
  const Phase phase = group_->progress().phase;
  auto part = std::make_unique<GroupCommunicator>(std::move(group));
  group_->progress().phase = phase;
  return part;
}

std::unique_ptr<GradientReducer> GroupCommunicator::make_reducer(const ReducerLayout& layout) {
  std::unique_ptr<WindowReducer> reducer;
  agree(*this, [&] {
    group_->progress().enter(Phase::reducer);
    reducer = std::make_unique<WindowReducer>(group_, layout);
  });
  if (size() == 1) return reducer;
  collective({Call::make_reducer, 0, 0, 0, reducer->layout_hash()}, [&](const Task& task) {
    group_->progress().enter(Phase::windows);
    reducer->connect(task);
  });
  return reducer;
}

void GroupCommunicator::abort(int code) {
  if (group_->has_transport()) group_->transport().abort(code);
  std::fflush(nullptr);
  _exit(failure_code(code));
}

}  // namespace annulus
