// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/tensor.h"
#include "io/dataset.h"
#include "io/hdf5_source.h"
#include "io/row_reader.h"

namespace annulus {

// Reads one data set as class ids or as float targets.
class TargetReader {
 public:
  // Error (data): class ids that are not one number a sample (one-hot rows among them), targets of
  // another shape than `demand`'s but for axes of size 1.
  TargetReader(Hdf5Source source, const DataDemand& demand);

  const Hdf5Source& source() const { return source_; }

  // Reads all class ids, piece by piece. Error (data) with the first sample whose label is none of
  // the model's, and the label. Returns the XXH3 of the stored bytes. Float targets, which may be
  // large, are left to read(): 0.
  std::uint64_t scan() const;

  // Reads the planned runs of `scratch` into `to`, i32 (samples) or f32 (samples, shape). Error
  // (data) with the sample: a label that is none of the model's, a float that is not finite.
  void read(ReadScratch& scratch, const TensorView& to) const;

 private:
  void read_class_ids(const Run& run, ReadScratch& scratch, std::span<std::int32_t> to) const;
  void read_values(const Run& run, ReadScratch& scratch, std::span<float> to) const;
  [[noreturn]] void fail_label(std::int64_t sample, std::span<const std::byte> stored) const;

  Hdf5Source source_;
  TargetKind kind_;
  ClassRange range_;
};

}  // namespace annulus
