// SPDX-License-Identifier: Apache-2.0
#include "io/checksum.h"

#include <cerrno>
#include <fstream>
#include <memory>
#include <vector>

#include <xxhash.h>

#include "core/error.h"
#include "io/files.h"

namespace annulus {

std::string checksum_of(std::span<const std::byte> bytes) {
  return fmt::format("{:016x}", XXH3_64bits(bytes.data(), bytes.size()));
}

std::string checksum_of_file(const std::string& path) {
  require_regular_file(path, ErrorKind::output);
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(ErrorKind::output, "{}", with_errno("cannot read '" + path + "'"));
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> hash(XXH3_createState(),
                                                                      &XXH3_freeState);
  XXH3_64bits_reset(hash.get());
  std::vector<char> piece(std::size_t{1} << 20);
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())) || file.gcount() > 0) {
    XXH3_64bits_update(hash.get(), piece.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad()) fail(ErrorKind::output, "{}", with_errno("cannot read '" + path + "'"));
  return fmt::format("{:016x}", XXH3_64bits_digest(hash.get()));
}

}  // namespace annulus
