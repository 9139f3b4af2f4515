// SPDX-License-Identifier: Apache-2.0
#include "io/new_data_file.h"

#include <filesystem>

#include "core/error.h"
#include "io/files.h"

namespace annulus {

void write_new_data_file(const std::string& destination,
                         const std::function<void(Hdf5Writer&)>& fill) {
  TemporaryPath temporary(temporary_beside(destination));
  const auto refuse_to_overwrite = [&] {
    std::error_code ignored;
    require(!std::filesystem::exists(destination, ignored), ErrorKind::output,
            "'{}' exists; remove it or choose another name", destination);
  };
  refuse_to_overwrite();
  remove_quietly(temporary.path());
  Hdf5Writer writer(temporary.path());
  fill(writer);
  writer.close();
  refuse_to_overwrite();
  rename_path(temporary.path(), destination);
  temporary.keep();
  sync_path(parent_of(destination));
}

}  // namespace annulus
