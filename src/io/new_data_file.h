// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "io/hdf5_writer.h"

namespace annulus {

// Lets `fill` write a new HDF5 file of about `bytes` bytes under a temporary name and renames it
// when complete. Error (output) where the destination exists, which is never overwritten, or where
// there is less room than that, before anything is written. `check_stop` is called between writes
// and ends the work by an exception; nothing is left then.
void write_new_data_file(const std::string& destination, std::int64_t bytes,
                         const std::function<void(Hdf5Writer&)>& fill,
                         const std::function<void()>& check_stop);

}  // namespace annulus
