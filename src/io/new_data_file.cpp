// SPDX-License-Identifier: Apache-2.0
#include "io/new_data_file.h"

#include "core/error.h"
#include "io/files.h"

namespace annulus {

void write_new_data_file(const std::string& destination, std::int64_t bytes,
                         const std::function<void(Hdf5Writer&)>& fill,
                         const std::function<void()>& check_stop) {
  TemporaryPath temporary(temporary_beside(destination));
  const auto refuse_to_overwrite = [&] {
    require(!path_exists(destination), ErrorKind::output,
            "'{}' exists; remove it or choose another name", destination);
  };
  refuse_to_overwrite();
  remove_quietly(temporary.path());
  const auto free = free_bytes(destination);
  require(!free || bytes <= *free, ErrorKind::output,
          "'{}' is not written: it needs {} bytes, {} are free; make room there", destination,
          bytes, free.value_or(0));
  name_errors_after(destination, temporary.path(), [&] {
    Hdf5Writer writer(temporary.path(), bytes);
    writer.check_before_writes(check_stop);
    fill(writer);
    writer.close();
    refuse_to_overwrite();
    rename_path(temporary.path(), destination);
  });
  temporary.keep();
  sync_path(parent_of(destination));
}

}  // namespace annulus
