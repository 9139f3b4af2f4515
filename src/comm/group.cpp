// SPDX-License-Identifier: Apache-2.0
#include "comm/group.h"

#include <algorithm>
#include <exception>

#include "comm/plain_segment.h"

namespace annulus {
namespace {

// How long a rank that ends by an exception waits for the others to end, too.
constexpr double hasty_seconds = 5;

}  // namespace

Group::Group(Roster roster, std::shared_ptr<Worker> worker, std::unique_ptr<Transport> transport,
             Progress& progress)
    : roster_(std::move(roster)),
      worker_(std::move(worker)),
      transport_(std::move(transport)),
      progress_(progress) {}

Group::~Group() {
  if (!transport_ || !worker_) return;
  if (worker_->stuck()) {
    static_cast<void>(transport_.release());  // its thread may still use it
    return;
  }
  const double patience =
      std::uncaught_exceptions() == 0 ? timeout() : std::min(timeout(), hasty_seconds);
  try {
    worker_->run(0, [&] {
      transport_->leave(broken_ ? -1 : patience);
      transport_.reset();
    });
  } catch (const std::exception&) {
    static_cast<void>(transport_.release());
  }
}

std::unique_ptr<Segment> Group::allocate(std::size_t bytes) {
  if (roster_.local_size() == 1) return std::make_unique<PlainSegment>(bytes);
  return transport_->allocate(bytes);
}

void Group::connect(Segment& segment, const Task& task) {
  const auto& neighbours = roster_.neighbours();
  if (neighbours.size() == 1) return;
  std::vector<Segment::Handle> handles(neighbours.size());
  const int me = roster_.local_rank();
  // Twice: before the second round ends, every neighbour has mapped all segments.
  for (int round = 0; round < 2; ++round) {
    handles[static_cast<std::size_t>(me)] = segment.handle();
    for (std::size_t local = 0; local < neighbours.size(); ++local) {
      if (static_cast<int>(local) == me) continue;
      send(neighbours[local], handles[static_cast<std::size_t>(me)]);
      receive(neighbours[local], handles[local]);
    }
    finish_messages(task);
    if (round == 0) segment.connect(handles, me, task.deadline);
  }
}

void Group::send(int to, std::span<const std::byte> data) {
  if (roster_.node_of[static_cast<std::size_t>(to)] != roster_.node()) {
    bytes_between_nodes_ += static_cast<std::int64_t>(data.size());
  }
  for (; !data.empty(); data = data.subspan(std::min(data.size(), message_limit_))) {
    transport_->send(to, data.first(std::min(data.size(), message_limit_)));
  }
}

void Group::receive(int from, std::span<std::byte> data) {
  for (; !data.empty(); data = data.subspan(std::min(data.size(), message_limit_))) {
    transport_->receive(from, data.first(std::min(data.size(), message_limit_)));
  }
}

void Group::finish_messages(const Task& task) {
  std::atomic<int>* sign =
      signs_.empty() ? nullptr : signs_[static_cast<std::size_t>(roster_.local_rank())];
  const auto doze = [&](std::chrono::nanoseconds waited) {
    if (sign != nullptr) *sign = transport_->next_pending(-1);
    transport_->doze(waited);
  };
  wait(
      task, [&] { return transport_->done(); }, doze,
      [&] {
        std::vector<int> late;
        for (int rank = transport_->next_pending(-1); rank >= 0;
             rank = transport_->next_pending(rank)) {
          late.push_back(rank);
        }
        return roster_.names(late);
      });
  if (sign != nullptr) *sign = -1;
}

int Group::to_blame(int local_rank) const {
  const auto local = static_cast<std::size_t>(local_rank);
  const int other = signs_.empty() ? -1 : signs_[local]->load();
  return other >= 0 ? other : roster_.neighbours()[local];
}

void Group::look_around() {
  require(!broken_, ErrorKind::peer, "the ranks have lost each other before");
  require(!cancelled_, ErrorKind::bug, "a step of gradients was given up before its end");
  worker_->beat();
  transport_->check();
}

void Group::fail_late(const Task& task, const std::string& missing) const {
  const std::string what =
      task.bucket < 0 ? task.name : fmt::format("{} of bucket {}", task.name, task.bucket);
  fail(ErrorKind::peer, "{}: no answer from {} within {:g} s", what, missing,
       task.deadline.seconds());
}

void Group::give_up() {
  if (!broken_) transport_->abandon();
  broken_ = true;
}

}  // namespace annulus
