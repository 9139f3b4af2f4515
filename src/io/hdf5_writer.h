// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/dtype.h"
#include "core/shape.h"
#include "io/data_file.h"

namespace annulus {

// Writes a new HDF5 file: little-endian elements, no time stamps, so that equal contents give equal
// bytes. All errors are Error (output); after one the file is of no use and is left to the caller
// to remove. One thread.
class Hdf5Writer {
 public:
  // The file must not exist. `bytes` is what it will take, about, for messages; 0: not known.
  explicit Hdf5Writer(std::string path, std::int64_t bytes = 0);
  ~Hdf5Writer();
  Hdf5Writer(const Hdf5Writer&) = delete;
  Hdf5Writer& operator=(const Hdf5Writer&) = delete;

  // What is called before each write, and may throw.
  void check_before_writes(std::function<void()> check);

  // Makes a data set, and the groups in its path. Chunks hold `chunk_rows` rows, at most all.
  // f16 and bf16 are stored as floats of 5 + 10 and 8 + 7 bits.
  void create(const std::string& dataset, const Shape& shape, DType dtype,
              Storage storage = Storage::contiguous, std::int64_t chunk_rows = 1);
  // Writes rows first .. first + count - 1 of the data set made last, in its dtype.
  void write_rows(std::int64_t first, std::int64_t count, std::span<const std::byte> rows);
  // Writes all of the data set made last.
  void write(std::span<const std::byte> elements);

  // Completes the file and syncs it to the disk. Without this call it is incomplete.
  void close();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace annulus
