// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "io/data_file.h"
#include "io/hdf5.h"

namespace annulus::hdf5 {

// What is known of an open data set.
DatasetInfo info_of(hid_t dataset, const std::string& path);

// All data sets that can be opened, by name.
std::vector<DatasetInfo> list(hid_t file);

// "it has: train/image (100, 3, 8, 8) f32, train/labels (100) i64", shortened where there are many.
std::string contents_text(hid_t file);

}  // namespace annulus::hdf5
