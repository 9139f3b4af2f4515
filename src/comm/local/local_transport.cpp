// SPDX-License-Identifier: Apache-2.0
#include "comm/local/local_transport.h"

#include <cstring>

#include "core/error.h"

namespace annulus {
namespace {

// A buffer that lives as long as any rank sees it.
class LocalSegment final : public Segment {
 public:
  LocalSegment(std::shared_ptr<World> world, std::size_t bytes)
      : world_(std::move(world)), mine_(std::make_shared<Buffer>(Buffer::host(bytes))) {
    number_ = world_->publish(mine_);
  }

  Handle handle() const override {
    Handle handle{};
    std::memcpy(handle.data(), &number_, sizeof(number_));
    return handle;
  }

  void connect(std::span<const Handle> handles, int, const Deadline&) override {
    for (const Handle& handle : handles) {
      std::uint64_t number = 0;
      std::memcpy(&number, handle.data(), sizeof(number));
      all_.push_back(world_->find(number));
    }
  }

  std::span<std::byte> of(int local_rank) const override {
    const Buffer& buffer = all_.empty() ? *mine_ : *all_[static_cast<std::size_t>(local_rank)];
    return {buffer.as<std::byte>(), buffer.bytes()};
  }

 private:
  std::shared_ptr<World> world_;
  std::shared_ptr<Buffer> mine_;
  std::uint64_t number_ = 0;
  std::vector<std::shared_ptr<Buffer>> all_;
};

}  // namespace

int LocalTransport::next_pending(int after) const {
  for (int other = after + 1; other < world_->size(); ++other) {
    if (other != rank_ && world_->busy_with(rank_, other)) return other;
  }
  return -1;
}

void LocalTransport::doze(std::chrono::nanoseconds) {
  Word& word = world_->ended(rank_);
  const std::uint32_t seen = word.load();
  if (!done()) word.sleep(seen, nap_time);
}

void LocalTransport::check() {
  const int ended_by = world_->fate().ended_by;
  require(ended_by < 0, ErrorKind::peer, "rank {} has ended the job", ended_by);
}

std::unique_ptr<Segment> LocalTransport::allocate(std::size_t bytes) {
  return std::make_unique<LocalSegment>(world_, bytes);
}

std::unique_ptr<Transport> LocalTransport::split(std::span<const int> members, int me) {
  return std::make_unique<LocalTransport>(world_->part(++splits_, members), me);
}

void LocalTransport::abort(int code) {
  int nobody = -1;
  world_->fate().ended_by.compare_exchange_strong(nobody, rank_);
  throw Error(static_cast<ErrorKind>(failure_code(code)), "the job was aborted");
}

}  // namespace annulus
