// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include <xxhash.h>

#include "core/error.h"
#include "io/dataset.h"
#include "io/input_reader.h"
#include "io/target_reader.h"

namespace annulus {
namespace {

class Hdf5Dataset final : public Dataset {
 public:
  Hdf5Dataset(const DataSpec& spec, const DataDemand& demand);

  std::int64_t size() const override { return inputs_.front().source().rows(); }
  const std::vector<Shape>& input_shapes() const override { return shapes_; }
  TargetKind target_kind() const override { return kind_; }
  const Shape& target_shape() const override { return target_shape_; }
  void read(std::span<const std::int64_t> ids, std::span<const TensorView> inputs,
            const TensorView& targets) const override;
  void prepare(int readers, std::int64_t samples) const override;
  std::string fingerprint() const override;

 private:
  void check_lengths() const;

  std::vector<InputReader> inputs_;
  std::vector<Shape> shapes_;
  std::optional<TargetReader> targets_;
  TargetKind kind_;
  Shape target_shape_;
  std::uint64_t labels_hash_ = 0;
  mutable ScratchPool scratch_;
};

// The source that feeds the model's input `name`; a source without a name feeds the only one.
const InputSource& source_for(const std::string& name, const DataSpec& spec, std::size_t inputs) {
  for (const InputSource& source : spec.inputs) {
    if (source.name == name || (source.name.empty() && inputs == 1)) return source;
  }
  fail(ErrorKind::usage, "no data set for the model's input '{}': `inputs` of '{}' names {}", name,
       spec.file, spec.inputs.empty() ? "none" : "'" + spec.inputs.front().name + "'");
}

Hdf5Dataset::Hdf5Dataset(const DataSpec& spec, const DataDemand& demand)
    : kind_(demand.target_kind), target_shape_(demand.target_shape) {
  const std::size_t count = demand.input_names.size();
  require(count > 0 && count == demand.input_shapes.size(), ErrorKind::bug,
          "a model with {} input names and {} input shapes", count, demand.input_shapes.size());
  if (spec.inputs.size() > count) {
    throw Error(ErrorKind::usage, "`inputs` names more data sets than the model has inputs")
        .values(std::to_string(count), std::to_string(spec.inputs.size()));
  }
  for (std::size_t i = 0; i < count; ++i) {
    const InputSource& source = source_for(demand.input_names[i], spec, count);
    inputs_.emplace_back(Hdf5Source(spec.file, source.dataset), spec.layout,
                         demand.input_shapes[i]);
    shapes_.push_back(demand.input_shapes[i]);
  }
  if (kind_ != TargetKind::none) {
    require(!spec.labels.empty(), ErrorKind::usage,
            "the loss needs targets: set `labels` to their data set in '{}'", spec.file);
    targets_.emplace(Hdf5Source(spec.file, spec.labels), demand);
  }
  check_lengths();
  if (targets_) labels_hash_ = targets_->scan();
}

void Hdf5Dataset::check_lengths() const {
  for (const InputReader& input : inputs_) {
    if (input.source().rows() == size()) continue;
    throw Error(ErrorKind::data,
                fmt::format("samples of {} and of '{}'", inputs_.front().source().title(),
                            input.source().dataset()))
        .values(std::to_string(size()), std::to_string(input.source().rows()));
  }
  if (targets_ && targets_->source().rows() != size()) {
    fail(ErrorKind::data, "{} samples but {} labels: '{}' and '{}' of '{}'", size(),
         targets_->source().rows(), inputs_.front().source().dataset(),
         targets_->source().dataset(), targets_->source().file());
  }
}

void Hdf5Dataset::read(std::span<const std::int64_t> ids, std::span<const TensorView> inputs,
                       const TensorView& targets) const {
  require_equal(inputs_.size(), inputs.size(), "inputs of a batch");
  const auto loan = scratch_.borrow();
  ReadScratch& scratch = *loan;
  scratch.plan(ids);
  for (std::size_t i = 0; i < inputs_.size(); ++i) inputs_[i].read(scratch, inputs[i]);
  if (targets_) targets_->read(scratch, targets);
}

void Hdf5Dataset::prepare(int readers, std::int64_t samples) const {
  std::size_t row_bytes = targets_ ? targets_->source().row_bytes() : 0;
  std::size_t floats = 0;
  for (const InputReader& input : inputs_) {
    row_bytes = std::max(row_bytes, input.source().row_bytes());
    floats = std::max(floats, input.scratch_floats());
  }
  scratch_.prepare(static_cast<std::size_t>(readers), static_cast<std::size_t>(samples), row_bytes,
                   floats);
}

// Bytes of a few samples over the whole length, the last one included, beside all labels.
std::uint64_t hash_of_samples(const Hdf5Source& source) {
  constexpr std::int64_t probes = 16;
  std::vector<std::byte> row(source.row_bytes());
  std::uint64_t hash = 0;
  const std::int64_t last = source.rows() - 1;
  const std::int64_t count = std::min(probes, last + 1);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto sample =
        count == 1 ? 0 : static_cast<std::int64_t>(static_cast<__int128>(last) * i / (count - 1));
    source.read(sample, 1, row);
    hash = XXH3_64bits_withSeed(row.data(), row.size(), hash);
  }
  return hash;
}

std::string Hdf5Dataset::fingerprint() const {
  const auto entry = [](const Hdf5Source& source, std::uint64_t hash) {
    return fmt::format("{} {} {} {:016x}", source.dataset(), to_string(source.shape()),
                       to_string(source.element()), hash);
  };
  std::string text;
  for (const InputReader& input : inputs_) {
    text += entry(input.source(), hash_of_samples(input.source())) + "; ";
  }
  if (!targets_) return text + "no targets";
  const Hdf5Source& targets = targets_->source();
  return text +
         entry(targets, kind_ == TargetKind::class_ids ? labels_hash_ : hash_of_samples(targets));
}

}  // namespace

std::unique_ptr<Dataset> open_dataset(const DataSpec& spec, const DataDemand& demand) {
  return std::make_unique<Hdf5Dataset>(spec, demand);
}

std::vector<Shape> stored_input_shapes(const DataSpec& spec) {
  std::vector<Shape> shapes;
  for (const InputSource& input : spec.inputs) {
    shapes.push_back(sample_shape(Hdf5Source(spec.file, input.dataset), spec.layout));
  }
  return shapes;
}

}  // namespace annulus
