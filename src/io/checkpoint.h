// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/state.h"

namespace annulus {

// A checkpoint is a directory `step_0000000100` with `tensors.h5` (a data set a tensor, in logical
// row-major layout, little-endian) and `manifest.json` (format version, step, scalars, texts, and
// name, shape, dtype and XXH3 checksum of each tensor and of the file). It is written under a name
// that no reader takes (".tmp_step_..."), synced, and renamed when complete: a directory under the
// final name is whole. All errors are Error (output), in one line with path, what was expected and
// what was found.

struct CheckpointMeta {
  std::int64_t step = 0;
  std::string config;    // the resolved config, TOML
  std::string data;      // fingerprint of the training data
  std::string versions;  // of annulus and its libraries
};

// Writes `directory`/step_NNNNNNNNNN and returns its path. Called by one rank. An existing
// checkpoint of the same step is replaced only once the new one is complete. Leftovers of earlier
// tries are removed.
std::string save_checkpoint(const std::string& directory, const CheckpointMeta& meta,
                            const NamedState& state);

// Manifest and sizes, without reading the tensors.
struct TensorInfo {
  std::string name;
  Shape shape;
  DType dtype = DType::f32;
  std::string checksum;
};
struct CheckpointInfo {
  CheckpointMeta meta;
  std::vector<TensorInfo> tensors;
  std::vector<std::pair<std::string, std::string>> scalars;  // as text
  std::int64_t bytes = 0;
};
CheckpointInfo read_checkpoint_info(const std::string& path);

// Fills `state` from a checkpoint, with checksums verified. Every tensor and scalar of `state` must
// be there with the same shape and dtype, and, unless `partial`, nothing else; the error lists what
// is missing, unexpected or of another shape (name, shape in file, shape in model).
void load_checkpoint(const std::string& path, const NamedState& state, bool partial);

// Reads everything and checks every checksum.
void verify_checkpoint(const std::string& path);

// Empty when bit-identical; else a line on the first differing tensor and how much it differs.
std::string diff_checkpoints(const std::string& a, const std::string& b);

// The complete checkpoint with the highest step in `directory`, by number; names that are none are
// passed over and listed in `ignored`. Nothing where there is none.
std::optional<std::string> latest_checkpoint(const std::string& directory,
                                             std::vector<std::string>* ignored);

}  // namespace annulus
