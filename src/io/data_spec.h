// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/schema.h"
#include "core/shape.h"

namespace annulus {

// One input of the network and the data set of the file that feeds it.
struct InputSource {
  std::string name;     // of the model's input
  std::string dataset;  // path in the HDF5 file
};

// How training samples are varied: keyed by sample id and epoch, so the same for any number of
// ranks.
struct AugmentSpec {
  std::int64_t crop_padding = 0;  // zeros around the image, of which a random window is taken
  bool flip = false;              // mirror left to right, with probability one half
};

// [data.train], [data.test]: one data set and how its values become inputs:
// (value * scale - mean[channel]) / std[channel].
struct DataSpec {
  std::string file;                 // absolute path
  std::vector<InputSource> inputs;  // `inputs = "path"` gives the model's only input
  std::string labels;               // class ids, or floats for regression; empty: none
  std::string layout = "NCHW";      // or NHWC
  double scale = 1;
  std::vector<double> mean;   // empty: 0; one: for all channels; else one a channel
  std::vector<double> std;    // empty: 1
  bool shuffle = true;        // training only
  std::int64_t workers = 1;   // threads that read and convert
  std::int64_t prefetch = 2;  // batches ready ahead of the one in use; 0: read when asked
  AugmentSpec augment;
};

// [data]
struct DataOptions {
  DataSpec train;
  DataSpec test;
  bool has_train = false;
  bool has_test = false;
  bool synthetic = false;  // random inputs of the model's shapes and random labels; no file
  std::int64_t samples =
      0;  // of the synthetic training set, or what `check` assumes without the file
  bool drop_last = false;
};

Schema describe(AugmentSpec& spec);
Schema describe(DataSpec& spec);
Schema describe(DataOptions& options);

}  // namespace annulus
