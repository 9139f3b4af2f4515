// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5_tensors.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "io/files.h"
#include "io/hdf5.h"

namespace annulus {

struct TensorFile::State {
  std::string path;
  hdf5::Handle file;
};

TensorFile::TensorFile(std::string path) : state_(std::make_unique<State>()) {
  state_->path = std::move(path);
  require_regular_file(state_->path, ErrorKind::output);
  const hdf5::Lock lock;
  const hdf5::Handle access = hdf5::file_access();
  state_->file = hdf5::owned(H5Fopen(state_->path.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose,
                             ErrorKind::output, "cannot open '" + state_->path + "'");
}

TensorFile::~TensorFile() = default;

void TensorFile::read(const std::string& name, const Shape& shape, DType dtype,
                      std::span<std::byte> to) const {
  const std::string title = fmt::format("tensor '{}' of '{}'", name, state_->path);
  const hdf5::Lock lock;
  const hdf5::Handle dataset = hdf5::owned(H5Dopen2(state_->file.get(), name.c_str(), H5P_DEFAULT),
                                           H5Dclose, ErrorKind::output, "no " + title);
  const hdf5::Handle type(H5Dget_type(dataset.get()), H5Tclose);
  const hdf5::Handle space(H5Dget_space(dataset.get()), H5Sclose);
  const std::vector<hsize_t> extents = hdf5::extents_of(space.get());
  const bool same_shape =
      std::equal(extents.begin(), extents.end(), shape.begin(), shape.end(),
                 [](hsize_t a, std::int64_t b) { return a == static_cast<hsize_t>(b); });
  if (!same_shape || H5Tget_size(type.get()) != size_of(dtype)) {
    throw Error(ErrorKind::output, title + " is not as its manifest says")
        .values(fmt::format("{} {}", to_string(shape), annulus::name(dtype)),
                fmt::format("({}) {}", fmt::join(extents, ", "), hdf5::type_name(type.get())));
  }
  if (to.empty()) return;
  hdf5::check(H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, to.data()),
              ErrorKind::output, "cannot read " + title);
}

}  // namespace annulus
