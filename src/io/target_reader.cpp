// SPDX-License-Identifier: Apache-2.0
#include "io/target_reader.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include <xxhash.h>

#include "core/error.h"
#include "io/input_reader.h"

namespace annulus {
namespace {

void check_one_a_sample(const Hdf5Source& source) {
  const Shape& shape = source.shape();
  if (shape.elements_from(1) == 1) return;
  const char* hint = shape.rank() == 2 ? "; one-hot rows are not taken: store argmax(axis=1)" : "";
  throw Error(ErrorKind::data,
              fmt::format("{}: class ids are one number a sample{}", source.title(), hint))
      .values(fmt::format("{} or {}x1", shape[0], shape[0]), to_string(shape));
}

std::string range_text(const ClassRange& range) {
  std::string text = range.classes > 0 ? fmt::format("0 to {}", range.classes - 1) : "0 or more";
  if (range.ignored) text += fmt::format(" or {} (ignore_index)", *range.ignored);
  return text;
}

}  // namespace

TargetReader::TargetReader(Hdf5Source source, const DataDemand& demand)
    : source_(std::move(source)), kind_(demand.target_kind) {
  range_.classes = demand.classes;
  if (demand.has_ignore_index) range_.ignored = demand.ignore_index;
  if (kind_ == TargetKind::class_ids) {
    check_one_a_sample(source_);
  } else if (!equal_but_for_ones(source_.shape().without_batch(), demand.target_shape)) {
    throw Error(ErrorKind::data, source_.title() + ": targets of another shape than the model's")
        .values(to_string(demand.target_shape), to_string(source_.shape().without_batch()));
  }
}

std::uint64_t TargetReader::scan() const {
  if (kind_ != TargetKind::class_ids) return 0;
  constexpr std::int64_t piece = std::int64_t{1} << 18;
  const std::size_t size = source_.row_bytes();
  std::vector<std::byte> stored(static_cast<std::size_t>(std::min(piece, source_.rows())) * size);
  std::vector<std::int32_t> ids(stored.size() / size);
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> hash(XXH3_createState(),
                                                                      &XXH3_freeState);
  XXH3_64bits_reset(hash.get());
  for (std::int64_t first = 0; first < source_.rows(); first += piece) {
    const std::int64_t count = std::min(piece, source_.rows() - first);
    const auto bytes = std::span(stored).first(static_cast<std::size_t>(count) * size);
    source_.read(first, count, bytes);
    const std::int64_t bad = convert_to_class_ids(
        source_.element(), bytes, range_, std::span(ids).first(static_cast<std::size_t>(count)));
    if (bad >= 0)
      fail_label(first + bad, bytes.subspan(static_cast<std::size_t>(bad) * size, size));
    XXH3_64bits_update(hash.get(), bytes.data(), bytes.size());
  }
  return XXH3_64bits_digest(hash.get());
}

void TargetReader::read(ReadScratch& scratch, const TensorView& to) const {
  for (const Run& run : scratch.runs()) {
    if (kind_ == TargetKind::class_ids) {
      read_class_ids(run, scratch, to.as<std::int32_t>());
    } else {
      read_values(run, scratch, to.as<float>());
    }
  }
}

void TargetReader::read_class_ids(const Run& run, ReadScratch& scratch,
                                  std::span<std::int32_t> to) const {
  const std::size_t size = source_.row_bytes();
  const std::span<std::byte> stored = scratch.rows(run.slots.size(), size);
  source_.read(run.first, run.count(), stored);
  for (std::size_t i = 0; i < run.slots.size(); ++i) {
    const auto label = stored.subspan(i * size, size);
    const auto id = to.subspan(run.slots[i], 1);
    if (convert_to_class_ids(source_.element(), label, range_, id) >= 0) {
      fail_label(run.first + static_cast<std::int64_t>(i), label);
    }
  }
}

void TargetReader::read_values(const Run& run, ReadScratch& scratch, std::span<float> to) const {
  const std::size_t size = source_.row_bytes();
  const std::size_t values = size / source_.element().bytes;
  const std::span<std::byte> stored = scratch.rows(run.slots.size(), size);
  source_.read(run.first, run.count(), stored);
  for (std::size_t i = 0; i < run.slots.size(); ++i) {
    const auto target = to.subspan(run.slots[i] * values, values);
    convert_to_f32(source_.element(), stored.subspan(i * size, size), target);
    const auto bad = std::find_if(target.begin(), target.end(),
                                  [](float value) { return !std::isfinite(value); });
    if (bad != target.end()) {
      throw Error(ErrorKind::data, fmt::format("{}: target of sample {}", source_.title(),
                                               run.first + static_cast<std::int64_t>(i)))
          .values("a finite number", fmt::format("{}", *bad));
    }
  }
}

void TargetReader::fail_label(std::int64_t sample, std::span<const std::byte> stored) const {
  throw Error(ErrorKind::data, fmt::format("{}: element type {}, first bad index {}: the label",
                                           source_.title(), to_string(source_.element()), sample))
      .values(range_text(range_), element_text(source_.element(), stored));
}

}  // namespace annulus
