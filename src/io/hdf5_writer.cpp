// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5_writer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

#include "io/files.h"
#include "io/hdf5.h"

namespace annulus {
namespace {

hdf5::Handle float_type(std::size_t bytes, std::size_t exponent_bits) {
  const std::size_t fraction_bits = 8 * bytes - 1 - exponent_bits;
  hdf5::Handle type(H5Tcopy(H5T_IEEE_F32LE), H5Tclose);
  H5Tset_fields(type.get(), 8 * bytes - 1, fraction_bits, exponent_bits, 0, fraction_bits);
  H5Tset_size(type.get(), bytes);
  H5Tset_ebias(type.get(), (std::size_t{1} << (exponent_bits - 1)) - 1);
  return type;
}

hdf5::Handle type_of(DType dtype) {
  const auto standard = [](hid_t type) { return hdf5::Handle(H5Tcopy(type), H5Tclose); };
  switch (dtype) {
    case DType::f32:
      return standard(H5T_IEEE_F32LE);
    case DType::f64:
      return standard(H5T_IEEE_F64LE);
    case DType::f16:
      return float_type(2, 5);
    case DType::bf16:
      return float_type(2, 8);
    case DType::i32:
      return standard(H5T_STD_I32LE);
    case DType::i64:
      return standard(H5T_STD_I64LE);
    case DType::u8:
      return standard(H5T_STD_U8LE);
  }
  fail(ErrorKind::bug, "no HDF5 type for dtype {}", static_cast<int>(dtype));
}

hdf5::Handle space_of(const Shape& shape) {
  if (shape.rank() == 0) return {H5Screate(H5S_SCALAR), H5Sclose};
  hsize_t extents[Shape::max_rank];
  std::copy(shape.begin(), shape.end(), extents);
  return {H5Screate_simple(static_cast<int>(shape.rank()), extents, nullptr), H5Sclose};
}

hdf5::Handle creation_of(const Shape& shape, DType dtype, Storage storage,
                         std::int64_t chunk_rows) {
  hdf5::Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_obj_track_times(creation.get(), /*track_times=*/0);
  H5Pset_fill_time(creation.get(), H5D_FILL_TIME_NEVER);
  if (storage == Storage::contiguous) return creation;
  require(shape.rank() > 0 && shape.elements() > 0, ErrorKind::output,
          "a data set of shape {} cannot have chunks", to_string(shape));
  hsize_t chunk[Shape::max_rank];
  std::copy(shape.begin(), shape.end(), chunk);
  const std::int64_t rows = std::clamp<std::int64_t>(chunk_rows, 1, shape[0]);
  const std::int64_t row_bytes = shape.elements_from(1) * static_cast<std::int64_t>(size_of(dtype));
  constexpr std::int64_t most = (std::int64_t{1} << 32) - 1;
  require(rows <= most / row_bytes, ErrorKind::output,
          "a chunk of {} rows of {} bytes is too large: HDF5 takes at most {} bytes", rows,
          row_bytes, most);
  chunk[0] = static_cast<hsize_t>(rows);
  H5Pset_chunk(creation.get(), static_cast<int>(shape.rank()), chunk);
  if (storage == Storage::compressed) {
    require(H5Zfilter_avail(H5Z_FILTER_DEFLATE) > 0, ErrorKind::output,
            "this HDF5 library cannot compress (no deflate filter)");
    H5Pset_shuffle(creation.get());
    H5Pset_deflate(creation.get(), 4);
  }
  return creation;
}

}  // namespace

struct Hdf5Writer::State {
  std::string path;
  std::int64_t bytes = 0;
  std::optional<std::int64_t> free;  // before anything was written
  std::function<void()> check_before_write;
  hdf5::Handle file;           // closed after the handles below
  hdf5::Handle link_creation;  // makes missing groups

  std::string dataset_name;
  Shape shape;
  std::size_t row_bytes = 0;
  hdf5::Handle dataset;
  hdf5::Handle type;
  hdf5::Handle space;

  std::string title() const { return fmt::format("'{}' of '{}'", dataset_name, path); }
  void check(herr_t status, const std::string& what) const {
    if (status >= 0) return;
    const int code = hdf5::system_error();
    fail(ErrorKind::output, "cannot {}: {}", what,
         code == 0 ? hdf5::reason() : why_not_written(code, bytes, free));
  }

  // After a failed write the library cannot close the file, keeps it and its disk space, and fails
  // again at exit. So what it still has to write goes to memory, which takes it.
  void abandon() {
    void* handle = nullptr;
    if (H5Fget_vfd_handle(file.get(), H5P_DEFAULT, &handle) < 0 || handle == nullptr) return;
    const int memory = ::memfd_create("annulus-abandoned", MFD_CLOEXEC);
    if (memory < 0) return;
    ::dup2(memory, *static_cast<int*>(handle));
    ::close(memory);
  }

  // Small data and chunks are written only here.
  void close_dataset() { check(dataset.close(), "write " + title()); }
};

Hdf5Writer::Hdf5Writer(std::string path, std::int64_t bytes) : state_(std::make_unique<State>()) {
  state_->path = std::move(path);
  state_->bytes = bytes;
  state_->free = free_bytes(state_->path);
  const hdf5::Lock lock;
  const hdf5::Handle access = hdf5::file_access();
  const hdf5::Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  H5Pset_obj_track_times(creation.get(), /*track_times=*/0);
  const hid_t file = H5Fcreate(state_->path.c_str(), H5F_ACC_EXCL, creation.get(), access.get());
  state_->check(file < 0 ? -1 : 0, "make '" + state_->path + "'");
  state_->file = hdf5::Handle(file, H5Fclose);
  state_->link_creation = hdf5::Handle(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(state_->link_creation.get(), 1);
}

Hdf5Writer::~Hdf5Writer() {
  const hdf5::Lock lock;
  if (state_->file) state_->abandon();
  state_.reset();
}

void Hdf5Writer::check_before_writes(std::function<void()> check) {
  state_->check_before_write = std::move(check);
}

void Hdf5Writer::create(const std::string& dataset, const Shape& shape, DType dtype,
                        Storage storage, std::int64_t chunk_rows) {
  State& s = *state_;
  const hdf5::Lock lock;
  s.close_dataset();
  s.dataset_name = dataset;
  s.shape = shape;
  s.row_bytes = size_of(dtype);
  if (shape.rank() > 0) s.row_bytes *= static_cast<std::size_t>(shape.elements_from(1));
  s.type = type_of(dtype);
  s.space = space_of(shape);
  const hdf5::Handle creation = creation_of(shape, dtype, storage, chunk_rows);
  const hid_t id = H5Dcreate2(s.file.get(), dataset.c_str(), s.type.get(), s.space.get(),
                              s.link_creation.get(), creation.get(), H5P_DEFAULT);
  s.check(id < 0 ? -1 : 0, "make " + s.title());
  s.dataset = hdf5::Handle(id, H5Dclose);
}

void Hdf5Writer::write_rows(std::int64_t first, std::int64_t count,
                            std::span<const std::byte> rows) {
  State& s = *state_;
  require_equal(static_cast<std::size_t>(count) * s.row_bytes, rows.size(), "bytes to write");
  if (s.check_before_write) s.check_before_write();
  if (rows.empty()) return;
  const hdf5::Lock lock;
  Shape part = s.shape;
  part[0] = count;
  hsize_t start[Shape::max_rank] = {static_cast<hsize_t>(first)};
  hsize_t extents[Shape::max_rank];
  std::copy(part.begin(), part.end(), extents);
  const hdf5::Handle memory = space_of(part);
  s.check(H5Sselect_hyperslab(s.space.get(), H5S_SELECT_SET, start, nullptr, extents, nullptr),
          "select rows of " + s.title());
  s.check(H5Dwrite(s.dataset.get(), s.type.get(), memory.get(), s.space.get(), H5P_DEFAULT,
                   rows.data()),
          "write " + s.title());
}

void Hdf5Writer::write(std::span<const std::byte> elements) {
  State& s = *state_;
  if (elements.empty()) return;
  const hdf5::Lock lock;
  s.check(H5Dwrite(s.dataset.get(), s.type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, elements.data()),
          "write " + s.title());
}

void Hdf5Writer::close() {
  State& s = *state_;
  const hdf5::Lock lock;
  s.close_dataset();
  // The flush is what may fail, while the file can still be abandoned.
  s.check(H5Fflush(s.file.get(), H5F_SCOPE_GLOBAL), "write '" + s.path + "'");
  s.check(s.file.close(), "close '" + s.path + "'");
  sync_path(s.path);
}

}  // namespace annulus
