// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "core/shape.h"
#include "io/hdf5.h"

namespace annulus::hdf5 {

// Where the rows of a chunked data set lie in its file, for chunks of whole rows that went through
// no filter. The place of a chunk is asked of the library once, when it is first read.
class Chunks {
 public:
  // Nothing where rows do not lie so, or their places cannot be known. Under the Lock.
  static std::optional<Chunks> of(hid_t dataset, const Shape& shape, std::size_t row_bytes);

  // Rows from `row` on that lie side by side in the file, at most `count`.
  std::int64_t together(std::int64_t row, std::int64_t count) const;
  // Where `row` begins, in bytes from the start of the file; nothing where its chunk was never
  // written, or where the library does not say. From any thread.
  std::optional<std::int64_t> place_of(hid_t dataset, std::int64_t row) const;

 private:
  Chunks(std::int64_t rows, std::int64_t count, std::size_t row_bytes, std::size_t rank);

  static constexpr std::int64_t unknown = -1;
  static constexpr std::int64_t nowhere = -2;

  std::int64_t rows_;  // of a chunk
  std::size_t row_bytes_;
  std::size_t rank_;
  std::unique_ptr<std::atomic<std::int64_t>[]> places_;  // of each chunk
};

}  // namespace annulus::hdf5
