// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

namespace annulus {

// A block of memory with one owner: host memory, device memory or a shared mapping. Move-only. The
// release function given at construction frees it.
class Buffer {
 public:
  using Release = std::function<void(void* data, std::size_t bytes)>;

  Buffer() = default;
  Buffer(void* data, std::size_t bytes, Release release)
      : data_(data), bytes_(bytes), release_(std::move(release)) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer(std::move(other)).swap(*this);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) release_(data_, bytes_);
  }

  // Zeroed host memory, aligned to 64 bytes; from 2 MiB on it is aligned to 2 MiB and asks for huge
  // pages. Error (resource) with the size where there is no memory. Zero bytes give a null pointer.
  static Buffer host(std::size_t bytes);

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(release_, other.release_);
  }

  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  Release release_;
};

}  // namespace annulus
