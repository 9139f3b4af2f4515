// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/shape.h"
#include "core/tensor.h"
#include "io/hdf5_source.h"
#include "io/row_reader.h"

namespace annulus {

// Whether two shapes differ by axes of size 1 at most.
bool equal_but_for_ones(const Shape& a, const Shape& b);

// The shape of one sample of `source` in the logical order: with layout "NHWC", samples of three or
// more axes have their last axis moved to the front; others have no layout.
Shape sample_shape(const Hdf5Source& source, const std::string& layout);

// Reads one data set as an input of the network.
class InputReader {
 public:
  // `wanted` is the shape of one sample that the model asks for. The file's may have axes of size 1
  // more or less: (H, W) in the file is one channel. Error (data) with both shapes otherwise.
  InputReader(Hdf5Source source, const std::string& layout, const Shape& wanted);

  const Hdf5Source& source() const { return source_; }
  const Shape& shape() const { return shape_; }

  // Floats of working memory that a read needs.
  std::size_t scratch_floats() const;
  // Reads the planned runs of `scratch` into `to`, (samples, shape) of f32.
  void read(ReadScratch& scratch, const TensorView& to) const;

 private:
  void read_run(const Run& run, ReadScratch& scratch, std::span<float> to) const;

  Hdf5Source source_;
  Shape shape_;
  std::int64_t channels_last_ = 0;  // how many channels are moved to the front; 0: none
};

}  // namespace annulus
