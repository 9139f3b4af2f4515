// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "io/data_file.h"

namespace annulus {

// A name in an HDF5 file and what it stands for.
struct FileEntry {
  enum class Kind { dataset, group, type, broken };

  Kind kind = Kind::dataset;
  DatasetInfo info;            // of other kinds only the path, and a `type` for messages: "a group"
  std::string missing_filter;  // that the data set was stored with: "32000 (lzf)"; "" where none
};

// All names of a file but the root's, sorted. Error (data).
std::vector<FileEntry> entries_of_file(const std::string& path);

}  // namespace annulus
