// SPDX-License-Identifier: Apache-2.0
#include "cli/version.h"

#include "cli/build_id.h"
#include "comm/job.h"
#include "core/error.h"
#include "io/data_file.h"
#include "layers/cpu_isa.h"

namespace annulus {

std::string version_text() {
  return fmt::format("annulus {} ({})\noneDNN {}\nMPI {}\nHDF5 {}\nCUDA not in this build",
                     version_number, build_id, onednn_version(), mpi_version(), hdf5_version());
}

std::string versions_line() {
  return fmt::format("annulus {} ({}), oneDNN {}, MPI {}, HDF5 {}", version_number, build_id,
                     onednn_version(), mpi_version(), hdf5_version());
}

}  // namespace annulus
