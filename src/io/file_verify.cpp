// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>

#include "core/error.h"
#include "io/data_file.h"
#include "io/hdf5_source.h"

namespace annulus {
namespace {

bool is_labels(const std::string& path) {
  constexpr std::array names = {"label", "labels", "target", "targets"};
  const std::string last = std::filesystem::path(path).filename().string();
  return std::find(names.begin(), names.end(), last) != names.end();
}

std::string group_of(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

bool is_numeric(const DatasetInfo& info) {
  const std::string& type = info.type;
  return type.starts_with("u") || type.starts_with("i") || type.starts_with("f") ||
         type.starts_with("enumeration of") || type.find("-bit ") != std::string::npos;
}

// Every data set with samples has as many of them as the labels in its group.
void check_lengths(const std::string& path, const std::vector<DatasetInfo>& infos) {
  for (const DatasetInfo& labels : infos) {
    if (!is_labels(labels.path) || labels.extents.empty()) continue;
    for (const DatasetInfo& other : infos) {
      if (group_of(other.path) != group_of(labels.path) || other.extents.size() < 2) continue;
      require(other.extents[0] == labels.extents[0], ErrorKind::data,
              "{} samples but {} labels: '{}' and '{}' of '{}'", other.extents[0],
              labels.extents[0], other.path, labels.path, path);
    }
  }
}

[[noreturn]] void fail_value(const Hdf5Source& source, std::int64_t sample, const char* wanted,
                             double found) {
  throw Error(ErrorKind::data, fmt::format("{}: sample {}", source.title(), sample))
      .values(wanted, fmt::format("{}", found));
}

void read_all(DatasetReport& report, const Hdf5Source& source) {
  constexpr std::int64_t piece_bytes = std::int64_t{4} << 20;
  const auto row_bytes = static_cast<std::int64_t>(source.row_bytes());
  const std::int64_t piece = std::clamp<std::int64_t>(piece_bytes / row_bytes, 1, source.rows());
  const std::size_t values_a_row = source.row_bytes() / source.element().bytes;
  const bool class_ids =
      is_labels(report.info.path) && source.element().kind != ElementType::Kind::real;
  std::vector<std::byte> stored(static_cast<std::size_t>(piece * row_bytes));
  std::vector<double> values(stored.size() / source.element().bytes);
  report.minimum = std::numeric_limits<double>::infinity();
  report.maximum = -report.minimum;
  for (std::int64_t first = 0; first < source.rows(); first += piece) {
    const std::int64_t count = std::min(piece, source.rows() - first);
    const auto bytes = std::span(stored).first(static_cast<std::size_t>(count * row_bytes));
    const auto numbers = std::span(values).first(static_cast<std::size_t>(count) * values_a_row);
    source.read(first, count, bytes);
    convert_to_f64(source.element(), bytes, numbers);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const auto sample = first + static_cast<std::int64_t>(i / values_a_row);
      if (!std::isfinite(numbers[i])) fail_value(source, sample, "a finite number", numbers[i]);
      if (class_ids && numbers[i] < 0) fail_value(source, sample, "a class id", numbers[i]);
      report.minimum = std::min(report.minimum, numbers[i]);
      report.maximum = std::max(report.maximum, numbers[i]);
    }
  }
}

}  // namespace

std::vector<DatasetReport> verify_file(const std::string& path) {
  const std::vector<DatasetInfo> infos = describe_file(path);
  require(!infos.empty(), ErrorKind::data, "'{}' has no data set", path);
  check_lengths(path, infos);
  std::vector<DatasetReport> reports;
  for (const DatasetInfo& info : infos) {
    DatasetReport& report = reports.emplace_back();
    report.info = info;
    report.numeric = is_numeric(info) && !info.extents.empty();
    if (report.numeric) read_all(report, Hdf5Source(path, info.path));
  }
  return reports;
}

}  // namespace annulus
