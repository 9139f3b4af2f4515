// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>

#include "comm/job.h"

namespace annulus {

std::string mpi_version() {
  // One of the few calls that MPI allows before MPI_Init and after MPI_Finalize. The text goes on
  // with package and date, which are of no use here.
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::string version(text, static_cast<std::size_t>(length));
  version = version.substr(0, version.find_first_of(",\n"));
  const std::size_t word = version.find(" v");
  return word == std::string::npos ? version : version.erase(word + 1, 1);
}

}  // namespace annulus
