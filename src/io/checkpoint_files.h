// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "io/hdf5_tensors.h"
#include "io/manifest.h"

namespace annulus {

// What the functions of checkpoint.h share. Errors are Error (output).

ScalarInfo scalar_info(const StateScalar& scalar);

// The path of tensors.h5 in checkpoint `path`.
std::string tensor_path(const std::string& path);
// Compares the size of tensors.h5, and in the second its checksum too, with the manifest.
void check_tensor_file_size(const std::string& path, const Manifest& manifest);
void check_tensor_file(const std::string& path, const Manifest& manifest);

// Reads one tensor into `elements`, which is resized, and checks its checksum.
void read_tensor(const std::string& path, const TensorFile& file, const TensorInfo& tensor,
                 std::vector<std::byte>& elements);

}  // namespace annulus
