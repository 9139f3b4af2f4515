// SPDX-License-Identifier: Apache-2.0
#include "io/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>

#include <unistd.h>

#include "core/error.h"
#include "io/checkpoint_files.h"
#include "io/checksum.h"
#include "io/files.h"
#include "io/hdf5_writer.h"
#include "io/manifest.h"

namespace annulus {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view final_prefix = "step_";
constexpr std::string_view temporary_prefix = ".tmp_step_";

std::vector<std::string> entries_of(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  require(!error, ErrorKind::output, "cannot list '{}': {}", directory, error.message());
  std::sort(names.begin(), names.end());
  return names;
}

void remove_leftovers(const std::string& directory) {
  for (const std::string& name : entries_of(directory)) {
    if (name.starts_with(temporary_prefix)) remove_quietly((fs::path(directory) / name).string());
  }
}

// Names are paths of groups and data sets in the file: the parts are not empty, and what is a data
// set is no group.
void check_names(const NamedState& state) {
  std::set<std::string_view> names;
  for (const StateTensor& tensor : state.tensors()) names.insert(tensor.name);
  for (const std::string_view name : names) {
    const std::string bounded = fmt::format("/{}/", name);
    const bool good = bounded.find("//") == std::string::npos &&
                      bounded.find("/./") == std::string::npos &&
                      name.find('\0') == std::string::npos;
    require(good, ErrorKind::output, "'{}' cannot be the name of a tensor in a checkpoint", name);
    for (std::size_t at = name.find('/'); at != std::string::npos; at = name.find('/', at + 1)) {
      require(names.count(name.substr(0, at)) == 0, ErrorKind::output,
              "tensors '{}' and '{}' cannot both be in a checkpoint", name.substr(0, at), name);
    }
  }
}

std::vector<TensorInfo> write_tensors(const std::string& path, const NamedState& state) {
  check_names(state);
  std::size_t bytes = 0;
  for (const StateTensor& tensor : state.tensors()) bytes += tensor.bytes();
  Hdf5Writer writer(path, static_cast<std::int64_t>(bytes));
  std::vector<TensorInfo> infos;
  std::vector<std::byte> elements;
  for (const StateTensor& tensor : state.tensors()) {
    elements.resize(tensor.bytes());
    tensor.read(elements);
    writer.create(tensor.name, tensor.shape, tensor.dtype);
    writer.write(elements);
    infos.push_back({tensor.name, tensor.shape, tensor.dtype, checksum_of(elements)});
  }
  writer.close();
  return infos;
}

// Makes a directory with all that a checkpoint has, and waits until it is on the disk.
void write_parts(const std::string& directory, const CheckpointMeta& meta,
                 const NamedState& state) {
  make_directories(directory);
  const std::string tensors = tensor_path(directory);
  Manifest manifest;
  manifest.meta = meta;
  manifest.tensors = write_tensors(tensors, state);
  for (const StateScalar& scalar : state.scalars()) manifest.scalars.push_back(scalar_info(scalar));
  manifest.file_bytes = file_bytes(tensors);
  manifest.file_checksum = checksum_of_file(tensors);
  write_new_file((fs::path(directory) / manifest_name).string(), manifest_text(manifest));
  sync_path(directory);
}

// The step in "step_0000000100"; nothing for other names.
std::optional<std::int64_t> step_in(std::string_view name) {
  constexpr std::size_t least_digits = 10;
  if (!name.starts_with(final_prefix)) return std::nullopt;
  name.remove_prefix(final_prefix.size());
  std::int64_t step = 0;
  const auto [at, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  const bool good = error == std::errc() && at == name.data() + name.size() && step >= 0 &&
                    name.size() >= least_digits;
  return good ? std::optional(step) : std::nullopt;
}

}  // namespace

std::string save_checkpoint(const std::string& directory, const CheckpointMeta& meta,
                            const NamedState& state) {
  make_directories(directory);
  remove_leftovers(directory);
  const fs::path base(directory);
  std::string path = (base / fmt::format("{}{:010}", final_prefix, meta.step)).string();
  const TemporaryPath temporary(
      (base / fmt::format("{}{:010}_{}", temporary_prefix, meta.step, ::getpid())).string());
  name_errors_after(path, temporary.path(), [&] {
    write_parts(temporary.path(), meta, state);
    // What the temporary name stands for afterwards, nothing or the former checkpoint, goes away.
    if (path_exists(path)) {
      exchange_paths(temporary.path(), path);
    } else {
      rename_path(temporary.path(), path);
    }
  });
  sync_path(directory);
  return path;
}

std::optional<std::string> latest_checkpoint(const std::string& directory,
                                             std::vector<std::string>* ignored) {
  if (!path_exists(directory)) return std::nullopt;
  std::optional<std::string> latest;
  std::int64_t latest_step = -1;
  for (const std::string& name : entries_of(directory)) {
    const std::optional<std::int64_t> step = step_in(name);
    if (!step || !path_exists((fs::path(directory) / name / manifest_name).string())) {
      if (ignored != nullptr) ignored->push_back(name);
    } else if (*step > latest_step) {
      latest_step = *step;
      latest = (fs::path(directory) / name).string();
    }
  }
  return latest;
}

}  // namespace annulus
