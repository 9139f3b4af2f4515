// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "io/data_file.h"
#include "io/hdf5.h"

namespace annulus::hdf5 {

// What is known of an open data set.
DatasetInfo info_of(hid_t dataset, const std::string& path);

// All data sets that can be opened, by name. `name` is that of the file, for messages.
std::vector<DatasetInfo> list(hid_t file, const std::string& name);

// "it has: train/image (100, 3, 8, 8) f32, train/labels (100) i64", shortened where there are many.
std::string contents_text(hid_t file, const std::string& name);

// Why a link cannot be followed: "'/nowhere' is not there", "'/x' of 'other.h5' cannot be read".
// Called when it has just failed.
std::string broken_link_text(hid_t file, const std::string& path);

}  // namespace annulus::hdf5
