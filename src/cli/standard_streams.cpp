// SPDX-License-Identifier: Apache-2.0
#include "cli/standard_streams.h"

#include <cerrno>
#include <cstdio>
#include <iostream>

#include <fcntl.h>
#include <unistd.h>

#include "cli/job.h"
#include "core/error.h"

namespace annulus {

void hold_standard_streams() {
  // The lowest free number is taken: in this order each gets its own.
  constexpr int modes[] = {O_WRONLY, O_RDONLY, O_RDWR};
  for (int stream = 0; stream < 3; ++stream) {
    if (::fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    // Without /dev/null the stream stays closed, which is what the caller asked for.
    [[maybe_unused]] const int held = ::open("/dev/null", modes[stream]);
  }
}

int check_standard_output(int code) {
  errno = 0;
  std::cout.flush();
  std::fflush(stdout);
  const std::string what = "standard output cannot be written";
  const std::string reason = errno == 0 ? what : with_errno(what);
  if (std::ferror(stdout) == 0 && std::cout.good()) return code;
  print_error(Error(ErrorKind::output, reason));
  return code == 0 ? static_cast<int>(ErrorKind::output) : code;
}

}  // namespace annulus
