// SPDX-License-Identifier: Apache-2.0
#include "io/row_reader.h"

#include <algorithm>
#include <numeric>

namespace annulus {

bool Run::in_order() const {
  for (std::size_t i = 1; i < slots.size(); ++i) {
    if (slots[i] != slots[i - 1] + 1) return false;
  }
  return true;
}

void ReadScratch::plan(std::span<const std::int64_t> ids) {
  order_.resize(ids.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
    return ids[a] != ids[b] ? ids[a] < ids[b] : a < b;
  });
  runs_.clear();
  // Room for the worst case: how many runs there are differs from batch to batch.
  runs_.reserve(ids.size());
  std::size_t begin = 0;
  for (std::size_t i = 1; i <= order_.size(); ++i) {
    if (i < order_.size() && ids[order_[i]] == ids[order_[i - 1]] + 1) continue;
    runs_.push_back({ids[order_[begin]], std::span(order_).subspan(begin, i - begin)});
    begin = i;
  }
}

std::span<std::byte> ReadScratch::rows(std::size_t rows, std::size_t row_bytes) {
  grow(order_.size() * row_bytes);
  return {bytes_.as<std::byte>(), rows * row_bytes};
}

void ReadScratch::grow(std::size_t bytes) {
  if (bytes_.bytes() < bytes) bytes_ = Buffer::host(bytes);
}

std::span<float> ReadScratch::floats(std::size_t count) {
  if (floats_.size() < count) floats_.resize(count);
  return std::span(floats_).first(count);
}

void ReadScratch::reserve(std::size_t samples, std::size_t row_bytes, std::size_t floats) {
  order_.reserve(samples);
  runs_.reserve(samples);
  grow(samples * row_bytes);
  floats_.resize(std::max(floats_.size(), floats));
}

ScratchPool::Loan::Loan(ScratchPool& pool, std::unique_ptr<ReadScratch> scratch)
    : pool_(pool), scratch_(std::move(scratch)) {}

ScratchPool::Loan::~Loan() {
  const std::scoped_lock lock(pool_.mutex_);
  pool_.free_.push_back(std::move(scratch_));  // borrow() made room
}

void ScratchPool::prepare(std::size_t count, std::size_t samples, std::size_t row_bytes,
                          std::size_t floats) {
  const std::scoped_lock lock(mutex_);
  for (; made_ < count; ++made_) free_.push_back(std::make_unique<ReadScratch>());
  for (const auto& scratch : free_) scratch->reserve(samples, row_bytes, floats);
}

ScratchPool::Loan ScratchPool::borrow() {
  const std::scoped_lock lock(mutex_);
  if (free_.empty()) {
    free_.reserve(made_ + 1);
    auto scratch = std::make_unique<ReadScratch>();
    ++made_;
    return {*this, std::move(scratch)};
  }
  auto scratch = std::move(free_.back());
  free_.pop_back();
  return {*this, std::move(scratch)};
}

}  // namespace annulus
