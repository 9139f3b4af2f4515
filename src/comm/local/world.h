// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "comm/word.h"
#include "core/buffer.h"

namespace annulus {

// Whether the job of some threads goes on; shared by all communicators of it.
struct Fate {
  std::atomic<int> ended_by{-1};  // the first rank that aborted or failed
};

// What threads that play the ranks of one communicator share: a lane of messages for each ordered
// pair, and the segments they have allocated. Usable from any of the threads.
class World {
 public:
  World(int ranks, std::shared_ptr<Fate> fate);

  int size() const { return static_cast<int>(ranks_.size()); }
  Fate& fate() { return *fate_; }

  // Start a message. Whoever of the two comes second copies the bytes.
  void send(int from, int to, std::span<const std::byte> data);
  void receive(int from, int to, std::span<std::byte> data);
  // Messages of `rank` that are under way.
  bool busy(int rank) const;
  // The word that is raised when a message of `rank` ends.
  Word& ended(int rank);
  // Whether `rank` has a message to or from `other` under way.
  bool busy_with(int rank, int other);
  // Takes back all messages of `rank`.
  void abandon(int rank);

  // A segment by number, for other ranks to find.
  std::uint64_t publish(const std::shared_ptr<Buffer>& segment);
  std::shared_ptr<Buffer> find(std::uint64_t number);

  // The world of some of this one's ranks; the same for all that name the same split and members.
  std::shared_ptr<World> part(int split, std::span<const int> members);

 private:
  struct Lane {
    std::mutex mutex;
    std::vector<std::span<const std::byte>> sends;
    std::vector<std::span<std::byte>> receives;
  };
  struct Rank {
    std::atomic<int> messages{0};
    Word ended;
  };
  Lane& lane(int from, int to);
  void end_message(int rank);
  void deliver(int from, int to, std::span<const std::byte> data, std::span<std::byte> place);

  std::shared_ptr<Fate> fate_;
  std::vector<Rank> ranks_;
  std::vector<Lane> lanes_;
  std::mutex mutex_;  // of what follows
  std::uint64_t segments_made_ = 0;
  std::map<std::uint64_t, std::weak_ptr<Buffer>> segments_;
  std::map<std::pair<int, int>, std::weak_ptr<World>> parts_;  // by split and first member
};

}  // namespace annulus
