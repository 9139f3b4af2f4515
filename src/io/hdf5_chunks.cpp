// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5_chunks.h"

#include <algorithm>

namespace annulus::hdf5 {
namespace {

// The library counts addresses from the end of a user block.
bool has_user_block(hid_t dataset) {
  const Handle file(H5Iget_file_id(dataset), H5Fclose);
  const Handle creation(H5Fget_create_plist(file.get()), H5Pclose);
  hsize_t bytes = 0;
  return H5Pget_userblock(creation.get(), &bytes) < 0 || bytes > 0;
}

// To find a chunk, HDF5 1.10 walks through all of them, under its lock: 0.05 ms a call for 4,096
// chunks, 2 ms for 65,536. Beyond this, finding costs more than reading by offset saves.
constexpr std::int64_t most_chunks = 8192;

}  // namespace

Chunks::Chunks(std::int64_t rows, std::int64_t count, std::size_t row_bytes, std::size_t rank)
    : rows_(rows),
      row_bytes_(row_bytes),
      rank_(rank),
      places_(std::make_unique<std::atomic<std::int64_t>[]>(static_cast<std::size_t>(count))) {
  for (std::int64_t i = 0; i < count; ++i) places_[static_cast<std::size_t>(i)] = unknown;
}

std::optional<Chunks> Chunks::of(hid_t dataset, const Shape& shape, std::size_t row_bytes) {
  const Handle creation(H5Dget_create_plist(dataset), H5Pclose);
  hsize_t extents[H5S_MAX_RANK];
  if (H5Pget_layout(creation.get()) != H5D_CHUNKED || H5Pget_nfilters(creation.get()) != 0 ||
      H5Pget_chunk(creation.get(), H5S_MAX_RANK, extents) != static_cast<int>(shape.rank()) ||
      has_user_block(dataset)) {
    return std::nullopt;
  }
  for (std::size_t i = 1; i < shape.rank(); ++i) {
    if (extents[i] != static_cast<hsize_t>(shape[i])) return std::nullopt;
  }
  const auto rows = static_cast<std::int64_t>(extents[0]);
  const std::int64_t count = (shape[0] + rows - 1) / rows;
  if (count > most_chunks) return std::nullopt;
  return Chunks(rows, count, row_bytes, shape.rank());
}

std::int64_t Chunks::together(std::int64_t row, std::int64_t count) const {
  return std::min(count, rows_ - row % rows_);
}

std::optional<std::int64_t> Chunks::place_of(hid_t dataset, std::int64_t row) const {
  const std::int64_t chunk = row / rows_;
  std::atomic<std::int64_t>& place = places_[static_cast<std::size_t>(chunk)];
  std::int64_t at = place.load(std::memory_order_relaxed);
  if (at == unknown) {
    const Lock lock;
    hsize_t first[H5S_MAX_RANK] = {static_cast<hsize_t>(chunk * rows_)};
    std::fill_n(first + 1, rank_ - 1, 0);
    unsigned filters = 0;
    haddr_t address = HADDR_UNDEF;
    hsize_t bytes = 0;
    const bool known =
        H5Dget_chunk_info_by_coord(dataset, first, &filters, &address, &bytes) >= 0 &&
        address != HADDR_UNDEF && bytes == static_cast<hsize_t>(rows_) * row_bytes_;
    at = known ? static_cast<std::int64_t>(address) : nowhere;
    place.store(at, std::memory_order_relaxed);
  }
  if (at == nowhere) return std::nullopt;
  return at + row % rows_ * static_cast<std::int64_t>(row_bytes_);
}

}  // namespace annulus::hdf5
