// SPDX-License-Identifier: Apache-2.0
#include "io/checkpoint.h"

#include <cstdio>

#include "cli/commands.h"
#include "core/error.h"
#include "io/json.h"

namespace annulus {
namespace {

void print_json(const CheckpointInfo& info) {
  JsonObject scalars;
  for (const auto& [name, value] : info.scalars) scalars.set(name, value);
  std::vector<JsonObject> tensors;
  for (const TensorInfo& tensor : info.tensors) {
    tensors.emplace_back()
        .set("name", tensor.name)
        .set("shape", std::span<const std::int64_t>(tensor.shape.begin(), tensor.shape.rank()))
        .set("dtype", name(tensor.dtype))
        .set("checksum", tensor.checksum);
  }
  JsonObject json;
  json.set("step", info.meta.step)
      .set("bytes", info.bytes)
      .set("versions", info.meta.versions)
      .set("data", info.meta.data)
      .set("scalars", scalars)
      .set("tensors", std::span<const JsonObject>(tensors))
      .set("config", info.meta.config);
  std::puts(json.text().c_str());
}

void print_text(const CheckpointInfo& info) {
  std::puts(fmt::format("step {}, {} tensors, {} bytes\nwritten by {}\ntraining data {}",
                        info.meta.step, info.tensors.size(), info.bytes, info.meta.versions,
                        info.meta.data)
                .c_str());
  for (const auto& [name, value] : info.scalars)
    std::puts(fmt::format("{:<36} {}", name, value).c_str());
  for (const TensorInfo& tensor : info.tensors) {
    std::puts(fmt::format("{:<36} {} {:<18} {}", tensor.name, name(tensor.dtype),
                          to_string(tensor.shape), tensor.checksum)
                  .c_str());
  }
}

}  // namespace

int run_checkpoint_info(const CheckpointOptions& options) {
  const CheckpointInfo info = read_checkpoint_info(options.path);
  options.json ? print_json(info) : print_text(info);
  return 0;
}

int run_checkpoint_verify(const CheckpointOptions& options) {
  verify_checkpoint(options.path);
  std::puts(options.json
                ? JsonObject().set("checkpoint", options.path).set("good", true).text().c_str()
                : fmt::format("{}: every checksum is right", options.path).c_str());
  return 0;
}

int run_checkpoint_diff(const CheckpointOptions& options) {
  const std::string difference = diff_checkpoints(options.path, options.other);
  const bool same = difference.empty();
  std::puts(options.json
                ? JsonObject().set("identical", same).set("difference", difference).text().c_str()
                : (same ? "bit-identical" : difference.c_str()));
  return same ? 0 : static_cast<int>(ErrorKind::output);
}

}  // namespace annulus
