// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>

#include "comm/deadline.h"

namespace annulus {

// Memory that the ranks of one node share: each owns one segment of equal size and sees all.
class Segment {
 public:
  // What a neighbour needs to find a segment.
  using Handle = std::array<std::byte, 64>;

  virtual ~Segment() = default;
  virtual Handle handle() const = 0;
  // Collective in the node: makes the neighbours' segments, of these handles in the order of local
  // ranks, accessible. Error (peer) after the deadline.
  virtual void connect(std::span<const Handle> handles, int local_rank,
                       const Deadline& deadline) = 0;
  // The segment of a local rank; the own one before connect, too. Zeroed, page-aligned.
  virtual std::span<std::byte> of(int local_rank) const = 0;
};

// How the ranks of one communicator reach each other: messages, and memory shared in the node.
// Used by the communication thread alone, but for allocate and abort. This is all that a backend
// provides; the algorithms above are the same for all.
class Transport {
 public:
  virtual ~Transport() = default;

  // Start to send or receive a message of 1 byte to 1 GiB. Messages of one pair of ranks keep their
  // order. The memory must stay until done() is true.
  virtual void send(int to, std::span<const std::byte> data) = 0;
  virtual void receive(int from, std::span<std::byte> data) = 0;
  // Makes progress; whether all that was started is over.
  virtual bool done() = 0;
  // The lowest rank above `after` with which a message is outstanding; -1: none.
  virtual int next_pending(int after) const = 0;
  // Sleeps for a moment in which a message may arrive.
  virtual void doze(std::chrono::nanoseconds waited) = 0;
  // Called in every wait: makes progress for others, and throws or ends where the job is aborted.
  virtual void check() = 0;
  // Gives up all messages: their memory is not touched any more. The transport is unusable then.
  virtual void abandon() = 0;

  // A segment of `bytes`, from the thread that will use it. Error (resource) with both sizes.
  virtual std::unique_ptr<Segment> allocate(std::size_t bytes) = 0;
  // The transport between `members` (this one's ranks), as their member number `me`. Collective.
  virtual std::unique_ptr<Transport> split(std::span<const int> members, int me) = 0;
  // The last call. The others are waited for, for at most `seconds` (0: for ever), so that nobody
  // is still at work when this one leaves; below 0: they are lost, and not waited for.
  virtual void leave(double seconds) = 0;

  // Ends all ranks of the job. From any thread.
  [[noreturn]] virtual void abort(int code) = 0;
};

// An exit code that no system takes for success: codes outside 1 to 255 (256 would become 0) are 1.
constexpr int failure_code(int code) {
  return code > 0 && code < 256 ? code : 1;
}

}  // namespace annulus
