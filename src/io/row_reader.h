// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/buffer.h"

namespace annulus {

// Consecutive samples of a file and the places in the batch that they go to: samples first ..
// first + slots.size() - 1, the i-th to slots[i].
struct Run {
  std::int64_t first = 0;
  std::span<const std::size_t> slots;

  std::int64_t count() const { return static_cast<std::int64_t>(slots.size()); }
  // Whether the samples also lie side by side in the batch.
  bool in_order() const;
};

// Working memory of one read, kept between reads.
class ReadScratch {
 public:
  // Sorts the ids, so that neighbours in the file are read together.
  void plan(std::span<const std::int64_t> ids);
  const std::vector<Run>& runs() const { return runs_; }

  // Memory for the stored bytes of `rows` rows, and for `count` floats; valid until the next call.
  // Room for all planned samples is made at once, as the longest run differs from batch to batch.
  std::span<std::byte> rows(std::size_t rows, std::size_t row_bytes);
  std::span<float> floats(std::size_t count);
  // Makes all of that ready for `samples` planned ids, rows of `row_bytes` and `floats` floats.
  void reserve(std::size_t samples, std::size_t row_bytes, std::size_t floats);

 private:
  void grow(std::size_t bytes);

  std::vector<std::size_t> order_;
  std::vector<Run> runs_;
  // Aligned: some processors copy several times slower to where malloc puts large buffers, a few
  // bytes past the source's address within its page.
  Buffer bytes_;
  std::vector<float> floats_;
};

// Lends a ReadScratch to each read that is going on, and makes no more than are used at once.
class ScratchPool {
 public:
  class Loan {
   public:
    Loan(ScratchPool& pool, std::unique_ptr<ReadScratch> scratch);
    ~Loan();
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    ReadScratch& operator*() const { return *scratch_; }

   private:
    ScratchPool& pool_;
    std::unique_ptr<ReadScratch> scratch_;
  };
  Loan borrow();
  // Makes `count` of them ready at once, see ReadScratch::reserve. Nothing is lent meanwhile.
  void prepare(std::size_t count, std::size_t samples, std::size_t row_bytes, std::size_t floats);

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<ReadScratch>> free_;
  std::size_t made_ = 0;
};

}  // namespace annulus
