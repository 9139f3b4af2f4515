// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <map>
#include <system_error>

#include <fmt/ranges.h>

#include "core/error.h"
#include "io/checkpoint.h"
#include "io/checkpoint_files.h"
#include "io/files.h"

namespace annulus {
namespace {

template <class T>
void parse_number(const ScalarInfo& info, T& value) {
  const char* end = info.value.data() + info.value.size();
  const auto [at, error] = std::from_chars(info.value.data(), end, value);
  require(error == std::errc() && at == end, ErrorKind::output, "scalar '{}' is no {}: '{}'",
          info.name, info.type, info.value);
}

void set_scalar(const ScalarInfo& info, const StateScalar& scalar) {
  if (const auto* integer = std::get_if<std::int64_t*>(&scalar.value)) {
    parse_number(info, **integer);
  } else if (const auto* real = std::get_if<double*>(&scalar.value)) {
    parse_number(info, **real);
  } else {
    **std::get_if<std::string*>(&scalar.value) = info.value;
  }
}

// What a state asks for and what a checkpoint has, by name; the text says shape and dtype.
using Contents = std::map<std::string, std::string>;

std::string tensor_text(const Shape& shape, DType dtype) {
  return fmt::format("{} {}", to_string(shape), annulus::name(dtype));
}

Contents contents_of(const Manifest& manifest) {
  Contents contents;
  for (const TensorInfo& tensor : manifest.tensors) {
    contents[tensor.name] = tensor_text(tensor.shape, tensor.dtype);
  }
  for (const ScalarInfo& scalar : manifest.scalars) contents[scalar.name] = "scalar " + scalar.type;
  return contents;
}

Contents contents_of(const NamedState& state) {
  Contents contents;
  for (const StateTensor& tensor : state.tensors()) {
    contents[tensor.name] = tensor_text(tensor.shape, tensor.dtype);
  }
  for (const StateScalar& scalar : state.scalars()) {
    contents[scalar.name] = "scalar " + scalar_info(scalar).type;
  }
  return contents;
}

// "missing: a, b and 3 more; ": nothing for an empty list.
std::string list_text(const char* title, const std::vector<std::string>& items) {
  constexpr std::size_t shown = 20;
  if (items.empty()) return {};
  const auto end = items.begin() + static_cast<std::ptrdiff_t>(std::min(shown, items.size()));
  std::string text = fmt::format("; {}: {}", title, fmt::join(items.begin(), end, ", "));
  if (items.size() > shown) text += fmt::format(" and {} more", items.size() - shown);
  return text;
}

void check_contents(const std::string& path, const Contents& file, const Contents& model,
                    bool partial) {
  std::vector<std::string> missing;
  std::vector<std::string> unexpected;
  std::vector<std::string> different;
  for (const auto& [name, text] : model) {
    const auto found = file.find(name);
    if (found == file.end()) {
      missing.push_back(fmt::format("{} ({})", name, text));
    } else if (found->second != text) {
      different.push_back(fmt::format("{} (file {}, model {})", name, found->second, text));
    }
  }
  for (const auto& [name, text] : file) {
    if (!partial && model.find(name) == model.end()) {
      unexpected.push_back(fmt::format("{} ({})", name, text));
    }
  }
  const std::string problems = list_text("missing in the file", missing) +
                               list_text("unexpected in the file", unexpected) +
                               list_text("different", different);
  require(problems.empty(), ErrorKind::output, "checkpoint '{}' does not fit the model{}", path,
          problems);
}

}  // namespace

CheckpointInfo read_checkpoint_info(const std::string& path) {
  Manifest manifest = read_manifest(path);
  CheckpointInfo info;
  check_tensor_file_size(path, manifest);
  info.bytes = manifest.file_bytes + file_bytes(path + '/' + manifest_name);
  for (const ScalarInfo& scalar : manifest.scalars) {
    info.scalars.emplace_back(scalar.name, scalar.value);
  }
  info.meta = std::move(manifest.meta);
  info.tensors = std::move(manifest.tensors);
  return info;
}

void load_checkpoint(const std::string& path, const NamedState& state, bool partial) {
  const Manifest manifest = read_manifest(path);
  check_contents(path, contents_of(manifest), contents_of(state), partial);
  check_tensor_file(path, manifest);

  std::map<std::string, const TensorInfo*> tensors;
  for (const TensorInfo& tensor : manifest.tensors) tensors[tensor.name] = &tensor;
  const TensorFile file(tensor_path(path));
  std::vector<std::byte> elements;
  for (const StateTensor& tensor : state.tensors()) {
    read_tensor(path, file, *tensors.at(tensor.name), elements);
    tensor.write(elements);
  }
  std::map<std::string, const ScalarInfo*> scalars;
  for (const ScalarInfo& scalar : manifest.scalars) scalars[scalar.name] = &scalar;
  for (const StateScalar& scalar : state.scalars()) set_scalar(*scalars.at(scalar.name), scalar);
}

void verify_checkpoint(const std::string& path) {
  const Manifest manifest = read_manifest(path);
  check_tensor_file(path, manifest);
  const TensorFile file(tensor_path(path));
  std::vector<std::byte> elements;
  for (const TensorInfo& tensor : manifest.tensors) read_tensor(path, file, tensor, elements);
}

}  // namespace annulus
