// SPDX-License-Identifier: Apache-2.0
#include "io/checkpoint_files.h"

#include <filesystem>

#include "core/error.h"
#include "io/checksum.h"
#include "io/files.h"

namespace annulus {

ScalarInfo scalar_info(const StateScalar& scalar) {
  if (const auto* integer = std::get_if<std::int64_t*>(&scalar.value)) {
    return {scalar.name, "i64", std::to_string(**integer)};
  }
  if (const auto* real = std::get_if<double*>(&scalar.value)) {
    return {scalar.name, "f64", fmt::format("{}", **real)};
  }
  return {scalar.name, "text", **std::get_if<std::string*>(&scalar.value)};
}

std::string tensor_path(const std::string& path) {
  return (std::filesystem::path(path) / tensors_name).string();
}

void check_tensor_file_size(const std::string& path, const Manifest& manifest) {
  const std::int64_t bytes = file_bytes(tensor_path(path));
  if (bytes == manifest.file_bytes) return;
  throw Error(ErrorKind::output,
              fmt::format("checkpoint '{}' is damaged: bytes of {}", path, tensors_name))
      .values(std::to_string(manifest.file_bytes), std::to_string(bytes));
}

void check_tensor_file(const std::string& path, const Manifest& manifest) {
  check_tensor_file_size(path, manifest);
  const std::string found = checksum_of_file(tensor_path(path));
  if (found == manifest.file_checksum) return;
  throw Error(ErrorKind::output,
              fmt::format("checkpoint '{}' is damaged: checksum of {}", path, tensors_name))
      .values(manifest.file_checksum, found);
}

void read_tensor(const std::string& path, const TensorFile& file, const TensorInfo& tensor,
                 std::vector<std::byte>& elements) {
  elements.resize(static_cast<std::size_t>(tensor.shape.elements()) * size_of(tensor.dtype));
  file.read(tensor.name, tensor.shape, tensor.dtype, elements);
  const std::string found = checksum_of(elements);
  if (found == tensor.checksum) return;
  throw Error(ErrorKind::output,
              fmt::format("checkpoint '{}' is damaged: checksum of '{}'", path, tensor.name))
      .values(tensor.checksum, found);
}

}  // namespace annulus
