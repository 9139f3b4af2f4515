// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "io/hdf5_writer.h"

namespace annulus {

// Lets `fill` write a new HDF5 file under a temporary name and renames it when complete. Error
// (output) where the destination exists: it is never overwritten.
void write_new_data_file(const std::string& destination,
                         const std::function<void(Hdf5Writer&)>& fill);

}  // namespace annulus
