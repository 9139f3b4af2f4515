// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <set>

#include "core/error.h"
#include "io/checkpoint.h"
#include "io/checkpoint_files.h"
#include "io/element.h"

namespace annulus {
namespace {

struct Side {
  explicit Side(const std::string& where) : path(where), manifest(read_manifest(where)) {
    check_tensor_file(path, manifest);
    std::sort(manifest.tensors.begin(), manifest.tensors.end(),
              [](const TensorInfo& a, const TensorInfo& b) { return a.name < b.name; });
    std::sort(manifest.scalars.begin(), manifest.scalars.end(),
              [](const ScalarInfo& a, const ScalarInfo& b) { return a.name < b.name; });
  }
  std::vector<double> values(const TensorInfo& tensor) const;

  std::string path;
  Manifest manifest;
};

// bf16 is the upper half of an f32.
void widen_bf16(std::span<const std::byte> from, std::span<double> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, from.data() + i * sizeof half, sizeof half);
    const std::uint32_t bits = static_cast<std::uint32_t>(half) << 16;
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    to[i] = value;
  }
}

ElementType element_of(DType dtype) {
  using Kind = ElementType::Kind;
  const auto bytes = static_cast<std::uint8_t>(size_of(dtype));
  switch (dtype) {
    case DType::u8:
      return {Kind::unsigned_integer, bytes};
    case DType::i32:
    case DType::i64:
      return {Kind::signed_integer, bytes};
    default:
      return {Kind::real, bytes};
  }
}

std::vector<double> Side::values(const TensorInfo& tensor) const {
  const TensorFile file(tensor_path(path));
  std::vector<std::byte> elements;
  read_tensor(path, file, tensor, elements);
  std::vector<double> values(static_cast<std::size_t>(tensor.shape.elements()));
  if (tensor.dtype == DType::bf16) {
    widen_bf16(elements, values);
  } else {
    convert_to_f64(element_of(tensor.dtype), elements, values);
  }
  return values;
}

// How far two tensors of one shape, whose checksums differ, are apart.
std::string distance_text(const std::vector<double>& a, const std::vector<double>& b) {
  std::size_t count = 0;
  std::size_t first = 0;
  double most = 0;
  double most_relative = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<std::uint64_t>(a[i]) == std::bit_cast<std::uint64_t>(b[i])) continue;
    if (count++ == 0) first = i;
    double distance = std::abs(a[i] - b[i]);
    if (std::isnan(distance)) distance = std::numeric_limits<double>::infinity();
    const double size = std::max(std::abs(a[i]), std::abs(b[i]));
    most = std::max(most, distance);
    if (size > 0) most_relative = std::max(most_relative, distance / size);
  }
  if (count == 0) return "differs in the bits of NaNs only";
  return fmt::format(
      "{} of {} elements differ, by at most {:.6g} (relative {:.6g}), the first at {}: {} and {}",
      count, a.size(), most, most_relative, first, a[first], b[first]);
}

std::string compare_tensors(const Side& a, const Side& b) {
  const auto& left = a.manifest.tensors;
  const auto& right = b.manifest.tensors;
  for (std::size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
    if (i == right.size() || (i < left.size() && left[i].name < right[i].name)) {
      return fmt::format("tensor '{}' is only in '{}'", left[i].name, a.path);
    }
    if (i == left.size() || right[i].name < left[i].name) {
      return fmt::format("tensor '{}' is only in '{}'", right[i].name, b.path);
    }
    const std::string title = fmt::format("tensor '{}'", left[i].name);
    if (left[i].shape != right[i].shape || left[i].dtype != right[i].dtype) {
      return fmt::format("{} is {} {} and {} {}", title, to_string(left[i].shape),
                         name(left[i].dtype), to_string(right[i].shape), name(right[i].dtype));
    }
    if (left[i].checksum != right[i].checksum) {
      return title + ": " + distance_text(a.values(left[i]), b.values(right[i]));
    }
  }
  return {};
}

std::string compare_scalars(const Side& a, const Side& b) {
  std::set<std::string> names;
  for (const ScalarInfo& scalar : a.manifest.scalars) names.insert(scalar.name);
  for (const ScalarInfo& scalar : b.manifest.scalars) names.insert(scalar.name);
  const auto value_in = [](const Side& side, const std::string& name) -> std::string {
    for (const ScalarInfo& scalar : side.manifest.scalars) {
      if (scalar.name == name) return scalar.value;
    }
    return "nothing";
  };
  for (const std::string& name : names) {
    const std::string left = value_in(a, name);
    const std::string right = value_in(b, name);
    if (left != right) return fmt::format("scalar '{}' is {} and {}", name, left, right);
  }
  return {};
}

}  // namespace

std::string diff_checkpoints(const std::string& a, const std::string& b) {
  const Side left(a);
  const Side right(b);
  std::string difference = compare_tensors(left, right);
  if (difference.empty()) difference = compare_scalars(left, right);
  if (difference.empty() && left.manifest.meta.step != right.manifest.meta.step) {
    difference =
        fmt::format("step is {} and {}", left.manifest.meta.step, right.manifest.meta.step);
  }
  return difference;
}

}  // namespace annulus
