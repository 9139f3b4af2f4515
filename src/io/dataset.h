// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/shape.h"
#include "core/tensor.h"
#include "io/data_spec.h"

namespace annulus {

// What the targets of a data set are.
enum class TargetKind { none, class_ids, values };

// A set of samples that can be read by number, in any order. Samples are numbered from 0.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual std::int64_t size() const = 0;
  // Shapes of one sample's inputs, in the logical order (C, H, W) or (features), whatever the
  // file's.
  virtual const std::vector<Shape>& input_shapes() const = 0;
  virtual TargetKind target_kind() const = 0;
  // Shape of one sample's target; rank 0 for a class id.
  virtual const Shape& target_shape() const = 0;

  // Reads samples `ids` as stored, converted to f32, inputs[i] as (ids.size(), shape i...) and
  // targets as i32 class ids or f32 values. No scaling. May be called from several threads. Error
  // (data) with file, data set, sample and both values.
  virtual void read(std::span<const std::int64_t> ids, std::span<const TensorView> inputs,
                    const TensorView& targets) const = 0;

  // Makes working memory for `readers` calls of read() at a time, of at most `samples` samples
  // each: such calls then allocate nothing. Not while reads are going on.
  virtual void prepare(int /*readers*/, std::int64_t /*samples*/) const {}

  // Identifies the contents without reading them all: names, shapes, types, and a hash of some
  // samples.
  virtual std::string fingerprint() const = 0;
};

// What the model asks of a data set; used to check it at the start and to make a synthetic one.
struct DataDemand {
  std::vector<std::string> input_names;
  std::vector<Shape> input_shapes;  // of one sample
  TargetKind target_kind = TargetKind::class_ids;
  Shape target_shape;
  std::int64_t classes = 0;        // labels are in [0, classes) or ignore_index
  std::int64_t ignore_index = -1;  // compared only where has_ignore_index
  bool has_ignore_index = false;
};

// Opens an HDF5 data set and scans what can be scanned without reading it all: existence, types,
// shapes, equal lengths, all labels. Error (data) in one line. io/hdf5_dataset.cpp
std::unique_ptr<Dataset> open_dataset(const DataSpec& spec, const DataDemand& demand);

// The shapes of one sample of each of `spec.inputs` as the file has them, in the logical order;
// nothing else is read. Error (data). For a config that does not give the shape.
std::vector<Shape> stored_input_shapes(const DataSpec& spec);

// Random normal inputs and random targets as pure functions of (seed, sample).
// io/synthetic_dataset.cpp
std::unique_ptr<Dataset> make_synthetic_dataset(const DataDemand& demand, std::int64_t samples,
                                                std::uint64_t seed);

}  // namespace annulus
