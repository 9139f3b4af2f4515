// SPDX-License-Identifier: Apache-2.0
#include "comm/local/world.h"

#include <cstring>

#include "core/error.h"

namespace annulus {
namespace {

// Room for the messages of one pair that are usually under way, so that later none allocates.
constexpr std::size_t usual_messages = 16;

template <class T>
T take_first(std::vector<T>& queue) {
  const T first = queue.front();
  queue.erase(queue.begin());
  return first;
}

}  // namespace

World::World(int ranks, std::shared_ptr<Fate> fate)
    : fate_(std::move(fate)),
      ranks_(static_cast<std::size_t>(ranks)),
      lanes_(ranks_.size() * ranks_.size()) {
  for (Lane& way : lanes_) {
    way.sends.reserve(usual_messages);
    way.receives.reserve(usual_messages);
  }
}

World::Lane& World::lane(int from, int to) {
  return lanes_[static_cast<std::size_t>(from) * ranks_.size() + static_cast<std::size_t>(to)];
}

Word& World::ended(int rank) {
  return ranks_[static_cast<std::size_t>(rank)].ended;
}

bool World::busy(int rank) const {
  return ranks_[static_cast<std::size_t>(rank)].messages.load(std::memory_order_acquire) != 0;
}

void World::end_message(int rank) {
  ranks_[static_cast<std::size_t>(rank)].messages.fetch_sub(1, std::memory_order_acq_rel);
  ended(rank).raise();
}

void World::deliver(int from, int to, std::span<const std::byte> data, std::span<std::byte> place) {
  require_equal(place.size(), data.size(), "bytes of a message");
  std::memcpy(place.data(), data.data(), data.size());
  end_message(from);
  end_message(to);
}

void World::send(int from, int to, std::span<const std::byte> data) {
  ++ranks_[static_cast<std::size_t>(from)].messages;
  Lane& way = lane(from, to);
  const std::lock_guard lock(way.mutex);
  if (!way.receives.empty()) return deliver(from, to, data, take_first(way.receives));
  way.sends.push_back(data);
}

void World::receive(int from, int to, std::span<std::byte> data) {
  ++ranks_[static_cast<std::size_t>(to)].messages;
  Lane& way = lane(from, to);
  const std::lock_guard lock(way.mutex);
  if (!way.sends.empty()) return deliver(from, to, take_first(way.sends), data);
  way.receives.push_back(data);
}

bool World::busy_with(int rank, int other) {
  Lane& to = lane(rank, other);
  Lane& from = lane(other, rank);
  const std::scoped_lock lock(to.mutex, from.mutex);
  return !to.sends.empty() || !from.receives.empty();
}

void World::abandon(int rank) {
  for (int other = 0; other < size(); ++other) {
    if (other == rank) continue;
    Lane& to = lane(rank, other);
    Lane& from = lane(other, rank);
    const std::scoped_lock lock(to.mutex, from.mutex);
    to.sends.clear();
    from.receives.clear();
  }
}

std::uint64_t World::publish(const std::shared_ptr<Buffer>& segment) {
  const std::lock_guard lock(mutex_);
  std::erase_if(segments_, [](const auto& entry) { return entry.second.expired(); });
  segments_[++segments_made_] = segment;
  return segments_made_;
}

std::shared_ptr<Buffer> World::find(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  auto segment = segments_[number].lock();
  require(segment != nullptr, ErrorKind::bug, "no segment {}", number);
  return segment;
}

std::shared_ptr<World> World::part(int split, std::span<const int> members) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<World>& known = parts_[{split, members.front()}];
  std::shared_ptr<World> world = known.lock();
  if (!world) {
    world = std::make_shared<World>(static_cast<int>(members.size()), fate_);
    known = world;
  }
  return world;
}

}  // namespace annulus
