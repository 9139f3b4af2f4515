// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include <unistd.h>

#include "comm/transport.h"
#include "core/buffer.h"

namespace annulus {

// A file descriptor with one owner.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  int get() const { return number_; }
  bool open() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

// Memory that processes of one machine share. It is a file without a name, handed over through a
// Unix socket whose name the kernel chose: nothing is left behind, however a process ends, and the
// size of /dev/shm does not matter. All of it is reserved at once, so that there is no bus error
// later. Error (resource) with the wanted and the available bytes.
class SharedSegment final : public Segment {
 public:
  explicit SharedSegment(std::size_t bytes);

  Handle handle() const override { return handle_; }
  void connect(std::span<const Handle> handles, int local_rank, const Deadline& deadline) override;
  std::span<std::byte> of(int local_rank) const override;

 private:
  bool hand_over();
  bool take(std::size_t local_rank);

  Descriptor file_;
  Descriptor listener_;
  Handle handle_{};
  Buffer mine_;
  std::vector<Buffer> others_;           // by local rank; empty at the own one
  std::vector<Descriptor> connections_;  // likewise, while they are being connected
  std::size_t given_ = 0;                // neighbours that have got the file
  std::size_t taken_ = 0;
};

}  // namespace annulus
