// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "comm/local/world.h"
#include "comm/transport.h"

namespace annulus {

// Ranks that are threads of one process.
class LocalTransport final : public Transport {
 public:
  LocalTransport(std::shared_ptr<World> world, int rank) : world_(std::move(world)), rank_(rank) {}

  void send(int to, std::span<const std::byte> data) override { world_->send(rank_, to, data); }
  void receive(int from, std::span<std::byte> data) override { world_->receive(from, rank_, data); }
  bool done() override { return !world_->busy(rank_); }
  int next_pending(int after) const override;
  void doze(std::chrono::nanoseconds waited) override;
  void check() override;
  void abandon() override { world_->abandon(rank_); }
  std::unique_ptr<Segment> allocate(std::size_t bytes) override;
  std::unique_ptr<Transport> split(std::span<const int> members, int me) override;
  void leave(double) override {}
  // Ends the body of this rank by an Error with this exit code, and the waits of all others by an
  // Error (peer).
  [[noreturn]] void abort(int code) override;

 private:
  std::shared_ptr<World> world_;
  int rank_;
  int splits_ = 0;
};

}  // namespace annulus
