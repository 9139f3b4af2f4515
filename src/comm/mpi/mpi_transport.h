// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "comm/mpi/session.h"
#include "comm/transport.h"

namespace annulus {

// Ranks that are processes of an MPI job.
class MpiTransport final : public Transport {
 public:
  // Takes over `comm`.
  MpiTransport(std::shared_ptr<MpiSession> session, MPI_Comm comm);

  void send(int to, std::span<const std::byte> data) override;
  void receive(int from, std::span<std::byte> data) override;
  bool done() override;
  int next_pending(int after) const override;
  void doze(std::chrono::nanoseconds waited) override { doze_in_proportion(waited); }
  void check() override;
  void abandon() override;
  std::unique_ptr<Segment> allocate(std::size_t bytes) override;
  std::unique_ptr<Transport> split(std::span<const int> members, int me) override;
  void leave(double seconds) override;
  [[noreturn]] void abort(int code) override { session_->abort(code); }

 private:
  struct Message {
    int peer;
    int bytes;
    bool received;
  };
  void check_sizes() const;

  std::shared_ptr<MpiSession> session_;
  MPI_Comm comm_;
  // One entry a message under way.
  std::vector<MPI_Request> requests_;
  std::vector<MPI_Status> statuses_;
  std::vector<Message> messages_;
};

}  // namespace annulus
