// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/checkpoint.h"

namespace annulus {

// The files of a checkpoint's directory.
inline constexpr const char* tensors_name = "tensors.h5";
inline constexpr const char* manifest_name = "manifest.json";

struct ScalarInfo {
  std::string name;
  std::string type;   // "i64", "f64" or "text"
  std::string value;  // as text that reads back as the same value
};

// What `manifest.json` says. It carries a checksum of itself beside those of the tensors.
struct Manifest {
  CheckpointMeta meta;
  std::vector<TensorInfo> tensors;
  std::vector<ScalarInfo> scalars;
  std::int64_t file_bytes = 0;  // of tensors.h5
  std::string file_checksum;
};

std::string manifest_text(const Manifest& manifest);

// The manifest of the checkpoint in directory `path`. Error (output): no checkpoint, made by a
// newer version, damaged.
Manifest read_manifest(const std::string& path);

}  // namespace annulus
