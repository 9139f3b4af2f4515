// SPDX-License-Identifier: Apache-2.0
#include "cli/version.h"

#include "cli/build_id.h"
#include "comm/job.h"
#include "core/error.h"
#include "io/data_file.h"
#include "layers/cpu_isa.h"

namespace annulus {

std::string program_line() {
  return fmt::format("annulus {} ({})", version_number, build_id);
}

std::string version_text() {
  return fmt::format("{}\noneDNN {}\nMPI {}\nHDF5 {}\nCUDA not in this build", program_line(),
                     onednn_version(), mpi_version(), hdf5_version());
}

std::string versions_line() {
  return fmt::format("{}, oneDNN {}, MPI {}, HDF5 {}", program_line(), onednn_version(),
                     mpi_version(), hdf5_version());
}

}  // namespace annulus
