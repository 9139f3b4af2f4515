// SPDX-License-Identifier: Apache-2.0
#include "io/input_reader.h"

#include <algorithm>
#include <vector>

#include "core/error.h"

namespace annulus {
namespace {

bool has_layout(const Shape& sample) {
  return sample.rank() >= 3;
}

}  // namespace

bool equal_but_for_ones(const Shape& a, const Shape& b) {
  const auto without_ones = [](const Shape& shape) {
    std::vector<std::int64_t> extents;
    std::copy_if(shape.begin(), shape.end(), std::back_inserter(extents),
                 [](std::int64_t extent) { return extent != 1; });
    return extents;
  };
  return without_ones(a) == without_ones(b);
}

Shape sample_shape(const Hdf5Source& source, const std::string& layout) {
  Shape sample = source.shape().without_batch();
  if (layout == "NHWC" && has_layout(sample)) {
    const std::size_t last = sample.rank() - 1;
    const std::int64_t channels = sample[last];
    for (std::size_t i = last; i > 0; --i) sample[i] = sample[i - 1];
    sample[0] = channels;
  }
  return sample;
}

InputReader::InputReader(Hdf5Source source, const std::string& layout, const Shape& wanted)
    : source_(std::move(source)), shape_(wanted) {
  const Shape found = sample_shape(source_, layout);
  if (!equal_but_for_ones(found, wanted)) {
    throw Error(ErrorKind::data,
                fmt::format("{} with layout {}: samples of another shape than the model's input",
                            source_.title(), layout))
        .values(to_string(wanted), to_string(found));
  }
  if (layout == "NHWC" && has_layout(found)) channels_last_ = found[0];
}

std::size_t InputReader::scratch_floats() const {
  return channels_last_ > 1 ? static_cast<std::size_t>(shape_.elements()) : 0;
}

void InputReader::read(ReadScratch& scratch, const TensorView& to) const {
  const std::span<float> floats = to.as<float>();
  for (const Run& run : scratch.runs()) read_run(run, scratch, floats);
}

void InputReader::read_run(const Run& run, ReadScratch& scratch, std::span<float> to) const {
  const auto values = static_cast<std::size_t>(shape_.elements());
  const auto slot = [&](std::size_t i) { return to.subspan(run.slots[i] * values, values); };
  const bool as_is = source_.element() == ElementType{} && channels_last_ <= 1;
  if (as_is && run.in_order()) {
    const auto target = to.subspan(run.slots[0] * values, run.slots.size() * values);
    source_.read(run.first, run.count(), std::as_writable_bytes(target));
    return;
  }
  const std::size_t row_bytes = source_.row_bytes();
  const std::span<std::byte> stored = scratch.rows(run.slots.size(), row_bytes);
  source_.read(run.first, run.count(), stored);
  for (std::size_t i = 0; i < run.slots.size(); ++i) {
    const auto row = stored.subspan(i * row_bytes, row_bytes);
    if (channels_last_ > 1) {
      const std::span<float> floats = scratch.floats(values);
      convert_to_f32(source_.element(), row, floats);
      move_channels_first(floats, channels_last_, slot(i));
    } else {
      convert_to_f32(source_.element(), row, slot(i));
    }
  }
}

}  // namespace annulus
