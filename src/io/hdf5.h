// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <hdf5.h>

#include "core/error.h"
#include "io/element.h"

// What all files that call the HDF5 library share; only io/hdf5*.cpp include this header.
namespace annulus::hdf5 {

// HDF5 may be called by one thread at a time. Every call of it, and every group of calls that must
// see the same state, is made under this lock, which the process has once, like the library.
// Recursive, so that handles can close themselves anywhere. The library prints nothing.
class Lock {
 public:
  Lock();

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

// An HDF5 identifier that closes itself. Move-only.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);

  Handle() = default;
  Handle(hid_t id, Close close) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept { swap(other); }
  Handle& operator=(Handle&& other) noexcept {
    Handle(std::move(other)).swap(*this);
    return *this;
  }
  ~Handle();

  hid_t get() const { return id_; }
  // Closes now, for callers who must know whether that worked.
  herr_t close();
  explicit operator bool() const { return id_ >= 0; }

 private:
  void swap(Handle& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
  }

  hid_t id_ = -1;
  Close close_ = nullptr;
};

// The errno that made the last call fail, 0 where there was none.
int system_error();
// Why the last call failed, in a few words: the system's where it was the system, else ours for
// what the library found. The library's own texts have addresses and names of its source in them.
std::string reason();

// The id in a handle. Error (`kind`) with "message: the library's reason" where it is negative.
Handle owned(hid_t id, Handle::Close close, ErrorKind kind, const std::string& message);
// The same for calls without a result.
void check(herr_t status, ErrorKind kind, const std::string& message);

// File access properties for all our files: no locks, which network file systems refuse or keep.
Handle file_access();

// A filter that the data set's chunks went through and that this library lacks: "32000 (lzf)". ""
// where all are there.
std::string missing_filter(hid_t dataset);

// Opens a file for reading. Error (data) that tells a missing file from one that may not be read,
// is no HDF5 file, or is truncated.
Handle open_for_reading(const std::string& path);

// The element type of numeric data (integers, floats, enumerations such as h5py's bool), and the
// type to ask H5Dread for so that it gives such elements; nothing for other classes.
struct Numbers {
  ElementType element;
  Handle memory_type;
  bool as_stored = false;  // the bytes of the file are the elements
};
std::optional<Numbers> numbers_of(hid_t type);

// "f32 big-endian", "variable-length string", "compound", ... for messages.
std::string type_name(hid_t type);
std::vector<hsize_t> extents_of(hid_t space);

}  // namespace annulus::hdf5
