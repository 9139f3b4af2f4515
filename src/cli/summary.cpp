// SPDX-License-Identifier: Apache-2.0
#include "cli/summary.h"

#include <algorithm>

#include "cli/version.h"

namespace annulus {
namespace {

std::int64_t sum_over_ranks(Communicator& comm, std::int64_t value) {
  comm.all_reduce(TensorView(std::span<std::int64_t>(&value, 1)), ReduceOp::sum);
  return value;
}

}  // namespace

JsonObject to_json(const Metrics& metrics) {
  JsonObject json;
  json.set("samples", metrics.samples).set("loss", metrics.loss);
  for (const auto& [name, value] : metrics.values) json.set(name, value);
  return json;
}

std::string summary_of(const TrainResult& result, const Start& start, Communicator& comm) {
  const std::int64_t between = sum_over_ranks(comm, comm.bytes_between_hosts());
  const int code = result.stopped ? static_cast<int>(ErrorKind::stopped) : 0;
  JsonObject json;
  json.set("status", result.stopped ? "stopped" : "completed")
      .set("exit_code", code)
      .set("steps", result.updates)
      .set("epochs", result.epochs)
      .set("samples_per_s", result.samples_per_s)
      .set("wall_s", result.wall_s)
      .set("train_loss", result.train_loss);
  if (result.test) json.set("test", to_json(*result.test));
  json.set("samples_by_rank", std::span<const std::int64_t>(result.samples_by_rank))
      .set("weights_hash", result.weights_hash)
      .set("ranks", comm.size())
      .set("hosts", std::span<const std::string>(comm.hosts()))
      .set("bytes_between_hosts", between)
      .set("device", start.device->description())
      .set("shards", start.settled.shards)
      .set("threads", start.settled.threads)
      .set("isa", start.settled.isa)
      .set("versions", versions_line());
  return json.text() + '\n';
}

std::string summary_of(const Error& error) {
  JsonObject json;
  json.set("status", "failed").set("exit_code", error.exit_code()).set("error", error.text());
  if (error.rank() >= 0) json.set("rank", error.rank()).set("host", error.host());
  json.set("versions", versions_line());
  return json.text() + '\n';
}

}  // namespace annulus
