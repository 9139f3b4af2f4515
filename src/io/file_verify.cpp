// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>

#include "core/error.h"
#include "io/data_file.h"
#include "io/file_entries.h"
#include "io/hdf5_source.h"

namespace annulus {
namespace {

std::string last_part(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

bool is_labels(const std::string& path) {
  constexpr std::array names = {"label", "labels", "target", "targets"};
  return std::find(names.begin(), names.end(), last_part(path)) != names.end();
}

bool is_inputs(const std::string& path) {
  constexpr std::array names = {"image", "images", "input", "inputs"};
  return std::find(names.begin(), names.end(), last_part(path)) != names.end();
}

std::string group_of(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

bool is_numeric(const DatasetInfo& info) {
  const std::string& type = info.type;
  return type.starts_with("u") || type.starts_with("i") || type.starts_with("f") ||
         type.starts_with("enumeration of") || type.find("-bit ") != std::string::npos;
}

bool has_samples(const FileEntry& entry) {
  return entry.kind == FileEntry::Kind::dataset && is_numeric(entry.info) &&
         !entry.info.extents.empty() && entry.info.extents[0] > 0;
}

std::string found_text(const FileEntry& entry) {
  if (entry.kind != FileEntry::Kind::dataset) return entry.info.type;
  return fmt::format("{} {}", extents_text(entry.info.extents), entry.info.type);
}

Error fault_of(const std::string& file, const std::string& dataset, const std::string& expected,
               const std::string& found) {
  Error error(ErrorKind::data, fmt::format("data set '{}' of '{}'", dataset, file));
  error.values(expected, found);
  return error;
}

// What is wrong with a name before any value is read.
void check_kind(const std::string& file, const FileEntry& entry,
                const std::vector<FileEntry>& all) {
  const std::string& path = entry.info.path;
  const auto below = [&](const FileEntry& other) {
    return other.info.path.starts_with(path + '/');
  };
  if (entry.kind == FileEntry::Kind::broken) {
    throw Error(fault_of(file, path, "a data set or a group", entry.info.type));
  }
  require(entry.missing_filter.empty(), ErrorKind::data,
          "data set '{}' of '{}' is stored with filter {}, which this HDF5 library lacks; store it "
          "without, or with gzip",
          path, file, entry.missing_filter);
  const bool group = entry.kind == FileEntry::Kind::group;
  if (group && std::none_of(all.begin(), all.end(), below)) {
    throw Error(fault_of(file, path, "a data set", "an empty group"));
  }
  if (!is_labels(path) && !is_inputs(path)) return;
  const auto serves = [&](const FileEntry& other) { return below(other) && has_samples(other); };
  if (has_samples(entry) || (group && std::any_of(all.begin(), all.end(), serves))) return;
  throw Error(fault_of(file, path, "numbers with the samples as first axis", found_text(entry)));
}

// Every data set with samples has as many of them as the labels in its group.
void check_length(const std::string& file, const DatasetInfo& info,
                  const std::vector<FileEntry>& all) {
  if (info.extents.size() < 2) return;
  for (const FileEntry& labels : all) {
    if (!is_labels(labels.info.path) || labels.info.extents.empty()) continue;
    if (group_of(labels.info.path) != group_of(info.path)) continue;
    require(info.extents[0] == labels.info.extents[0], ErrorKind::data,
            "{} samples but {} labels: '{}' and '{}' of '{}'", info.extents[0],
            labels.info.extents[0], info.path, labels.info.path, file);
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

// Nothing where a name is good and stands for no data set.
std::optional<DatasetReport> verify(const std::string& file, const FileEntry& entry,
                                    const std::vector<FileEntry>& all) {
  DatasetReport report;
  report.info = entry.info;
  const bool dataset = entry.kind == FileEntry::Kind::dataset;
  try {
    check_kind(file, entry, all);
    if (!dataset) return std::nullopt;
    check_length(file, entry.info, all);
    if (!is_numeric(entry.info) || entry.info.extents.empty()) return report;
    read_all(report, Hdf5Source(file, entry.info.path));
    report.numeric = true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
    report.fault = error.text();
  }
  return report;
}

}  // namespace

std::vector<DatasetReport> verify_file(const std::string& path) {
  const std::vector<FileEntry> entries = entries_of_file(path);
  const bool any = std::any_of(entries.begin(), entries.end(), [](const FileEntry& entry) {
    return entry.kind != FileEntry::Kind::group;
  });
  require(any, ErrorKind::data, "'{}' has no data set", path);
  std::vector<DatasetReport> reports;
  for (const FileEntry& entry : entries) {
    if (auto report = verify(path, entry, entries)) reports.push_back(std::move(*report));
  }
  return reports;
}

}  // namespace annulus
