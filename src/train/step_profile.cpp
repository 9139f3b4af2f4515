// SPDX-License-Identifier: Apache-2.0
#include "train/step_profile.h"

#include <fmt/format.h>

#include "io/files.h"
#include "io/metrics_file.h"

namespace annulus {
namespace {

// Room for `count` steps in each lane: every layer both ways for each shard, a few ranges around
// them, and buckets, of which there are at most as many as tensors.
std::size_t events_of(const Session& session, std::int64_t count) {
  const auto layers = static_cast<std::int64_t>(session.graph().nodes().size());
  const auto tensors = static_cast<std::int64_t>(session.graph().parameters().size());
  const std::int64_t shards = session.own_shards();
  return static_cast<std::size_t>(
      count * ((2 * layers + 8) * std::max<std::int64_t>(shards, 1) + tensors + 8));
}

}  // namespace

StepProfile::StepProfile(Session& session, std::int64_t first, std::int64_t count)
    : session_(session),
      first_(first),
      end_(first + count),
      trace_(static_cast<int>(session.spec().data.train.workers), events_of(session, count)) {}

bool StepProfile::before_step(std::int64_t done) {
  if (done == first_) {
    session_.progress().trace = &trace_;
    on_ = true;
  }
  return done == end_ && stop();
}

bool StepProfile::stop() {
  if (!on_) return false;
  session_.progress().trace = nullptr;
  on_ = false;
  return true;
}

void StepProfile::write(const std::string& directory) const {
  const int rank = session_.comm().rank();
  make_directories(directory);
  write_file_atomically(fmt::format("{}/rank_{:04}.json", directory, rank),
                        trace_.to_chrome(rank, host_of(session_.comm(), rank)));
}

}  // namespace annulus
