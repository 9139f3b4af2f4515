// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/shape.h"
#include "io/element.h"

namespace annulus {

// One numeric data set of an HDF5 file, read by rows, that is along its first axis. Rows that are
// stored in one piece, or in chunks of whole rows, without compression are read past the library
// and so without its lock; all else goes through it, one thread at a time. Opened read-only and
// without file locks, so that it works on read-only media and beside other readers; the file is
// left as it is.
class Hdf5Source {
 public:
  // Error (data): no such file or data set (with a list of what there is), a group, a broken link,
  // elements that are no numbers, no rows, or a file too short for its own contents.
  Hdf5Source(std::string file, std::string dataset);
  ~Hdf5Source();
  Hdf5Source(Hdf5Source&&) noexcept;

  const std::string& file() const;
  const std::string& dataset() const;
  // "data set 'train/labels' of 'digits.h5'", for messages.
  std::string title() const;

  // With the rows; at least rank 1.
  const Shape& shape() const;
  std::int64_t rows() const { return shape()[0]; }
  ElementType element() const;
  std::size_t row_bytes() const;
  // How rows are read: "offsets", "chunk offsets", or "library".
  const char* way() const;

  // Reads rows first .. first + count - 1 as stored. May be called from several threads. Error
  // (data) with the rows.
  void read(std::int64_t first, std::int64_t count, std::span<std::byte> to) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace annulus
