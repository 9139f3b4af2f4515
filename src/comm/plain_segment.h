// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/transport.h"
#include "core/buffer.h"

namespace annulus {

// The segment of a rank that is alone on its node: ordinary memory.
class PlainSegment final : public Segment {
 public:
  explicit PlainSegment(std::size_t bytes) : memory_(Buffer::host(bytes)) {}

  Handle handle() const override { return {}; }
  void connect(std::span<const Handle>, int, const Deadline&) override {}
  std::span<std::byte> of(int) const override { return {memory_.as<std::byte>(), memory_.bytes()}; }

 private:
  Buffer memory_;
};

}  // namespace annulus
