// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/shape.h"

namespace annulus {

// One data set of an HDF5 file, as `data info` shows it.
struct DatasetInfo {
  std::string path;                   // without the leading slash
  std::vector<std::int64_t> extents;  // empty: a scalar
  std::string type;                   // "u8", "f32 big-endian", "compound", ...
  std::string layout;                 // "contiguous", "chunked 16x3x32x32", "... deflate"
  std::int64_t stored_bytes = 0;      // in the file, after compression
};
// "(100, 3, 8, 8)"; "scalar" where there are none.
std::string extents_text(const std::vector<std::int64_t>& extents);

// All data sets of a file in the order of their names. Error (data).
std::vector<DatasetInfo> describe_file(const std::string& path);

// What `data verify` found in one data set, or in a name that stands for none but should.
struct DatasetReport {
  DatasetInfo info;
  std::string fault;     // one line with file, data set, what was expected and found; "": good
  bool numeric = false;  // the rest is set where it is, and there is no fault
  double minimum = 0;
  double maximum = 0;
};
// Reads every numeric data set from end to end. A fault is what cannot be read, a link to nothing,
// an empty group, a value that is not finite, another number of samples than of the labels beside
// it, labels (a data set named label, labels, target or targets) with a negative class id, and
// labels or inputs (image, images, input, inputs) that are no numbers, have no samples, or are a
// group without numbers. Error (data) where the file itself cannot be read or has no data set.
std::vector<DatasetReport> verify_file(const std::string& path);

// How the elements of a data set are laid out in a file.
enum class Storage { contiguous, chunked, compressed };

// What `data synth` makes: random images with labels i % classes, as pure functions of seed and
// sample.
struct SyntheticFile {
  std::int64_t samples = 0;
  std::int64_t test = 0;  // samples of the test part; 0: none
  Shape shape;            // of one sample
  std::int64_t classes = 10;
  std::uint64_t seed = 1;
  DType dtype = DType::u8;  // u8: 0..255; f32 and f64: standard normal
  Storage storage = Storage::contiguous;
  std::int64_t chunk_rows = 16;
};
// From "samples=1000,shape=3x32x32,classes=10,test=100,seed=1,type=u8,storage=compressed,chunk=16",
// of which samples and shape are needed, each key at most once.
// Error (usage).
SyntheticFile parse_synthetic_file(const std::string& text);

// Writes train/images, train/labels, test/images, test/labels. A destination that exists is never
// overwritten, nor one left half-written: `check_stop` is called every few MB and may end the work
// by an exception. Error (output), before anything is written where there is too little room; Error
// (usage) for sizes that no file has.
void write_synthetic_file(const SyntheticFile& spec, const std::string& destination,
                          const std::function<void()>& check_stop = {});

// The version of HDF5 that runs: "1.10.8".
std::string hdf5_version();

}  // namespace annulus
