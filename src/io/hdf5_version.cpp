// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "io/data_file.h"
#include "io/hdf5.h"

namespace annulus {

std::string hdf5_version() {
  const hdf5::Lock lock;
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  H5get_libversion(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

}  // namespace annulus
