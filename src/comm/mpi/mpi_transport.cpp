// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/mpi_transport.h"

#include <cstdint>

#include "comm/mpi/segment.h"
#include "core/error.h"

namespace annulus {
namespace {

constexpr int tag = 1;

}  // namespace

MpiTransport::MpiTransport(std::shared_ptr<MpiSession> session, MPI_Comm comm)
    : session_(std::move(session)), comm_(comm) {
  check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

void MpiTransport::send(int to, std::span<const std::byte> data) {
  const Message message{to, static_cast<int>(data.size()), false};
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Isend(data.data(), message.bytes, MPI_BYTE, to, tag, comm_, &request), "MPI_Isend");
  requests_.push_back(request);
  messages_.push_back(message);
}

void MpiTransport::receive(int from, std::span<std::byte> data) {
  const Message message{from, static_cast<int>(data.size()), true};
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Irecv(data.data(), message.bytes, MPI_BYTE, from, tag, comm_, &request),
            "MPI_Irecv");
  requests_.push_back(request);
  messages_.push_back(message);
}

bool MpiTransport::done() {
  if (requests_.empty()) return true;
  int over = 0;
  statuses_.resize(requests_.size());
  check_mpi(
      MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &over, statuses_.data()),
      "MPI_Testall");
  if (over == 0) return false;
  check_sizes();
  requests_.clear();
  messages_.clear();
  return true;
}

void MpiTransport::check_sizes() const {
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    if (!messages_[i].received) continue;
    int bytes = 0;
    check_mpi(MPI_Get_count(&statuses_[i], MPI_BYTE, &bytes), "MPI_Get_count");
    require_equal(messages_[i].bytes, bytes, "bytes of a message");
  }
}

int MpiTransport::next_pending(int after) const {
  int next = -1;
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    const int peer = messages_[i].peer;
    if (peer <= after || (next >= 0 && peer >= next)) continue;
    int over = 0;
    check_mpi(MPI_Request_get_status(requests_[i], &over, MPI_STATUS_IGNORE),
              "MPI_Request_get_status");
    if (over == 0) next = peer;
  }
  return next;
}

// Whoever waits for something else than messages still has to push those of others along.
void MpiTransport::check() {
  if (requests_.empty()) {
    session_->progress();
  } else {
    session_->obey();
  }
}

// MPI works on messages only within its calls, and no more calls follow.
void MpiTransport::abandon() {
  session_->lose();
  requests_.clear();
  messages_.clear();
}

std::unique_ptr<Segment> MpiTransport::allocate(std::size_t bytes) {
  return std::make_unique<SharedSegment>(bytes);
}

std::unique_ptr<Transport> MpiTransport::split(std::span<const int> members, int me) {
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(comm_, members.front(), me, &comm), "MPI_Comm_split");
  return std::make_unique<MpiTransport>(session_, comm);
}

void MpiTransport::leave(double seconds) {
  if (seconds < 0) session_->lose();
  if (session_->lost()) return;
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibarrier(comm_, &request), "MPI_Ibarrier");
  const auto all_left = [&] {
    session_->obey();
    int over = 0;
    check_mpi(MPI_Test(&request, &over, MPI_STATUS_IGNORE), "MPI_Test");
    return over != 0;
  };
  if (wait_until(Deadline::after(seconds), all_left, doze_in_proportion)) {
    check_mpi(MPI_Comm_free(&comm_), "MPI_Comm_free");
  } else {
    session_->lose();
  }
}

}  // namespace annulus
