// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include <hdf5.h>

namespace annulus::test {

// How a test's data set is laid out in its file.
struct FileLayout {
  std::vector<hsize_t> chunk;  // empty: contiguous
  bool deflate = false;
  int filter = 0;  // said to be passed by the chunks, if there is such a one; 0: none
};

// Writes HDF5 files for tests by calls of the library alone, so that what is read is not what our
// own writer thinks.
class TestFile {
 public:
  explicit TestFile(const std::string& path);
  ~TestFile();
  TestFile(const TestFile&) = delete;
  TestFile& operator=(const TestFile&) = delete;

  // A data set of the given stored type, from values of C++ type T, which the library converts.
  template <class T>
  void add(const std::string& path, std::vector<hsize_t> extents, hid_t stored,
           std::span<const T> values, const FileLayout& layout = {}) {
    add_raw(path, extents, stored, memory_type(T{}), values.data(), layout);
  }
  template <class T>
  void add(const std::string& path, std::vector<hsize_t> extents, hid_t stored,
           const std::vector<T>& values, const FileLayout& layout = {}) {
    add(path, std::move(extents), stored, std::span<const T>(values), layout);
  }
  // Without values: the fill value 0, and no chunks are stored.
  void add_empty(const std::string& path, std::vector<hsize_t> extents, hid_t stored,
                 const FileLayout& layout = {});
  // Overwrites one row of a data set with `values`.
  template <class T>
  void write_row(const std::string& path, hsize_t row, const std::vector<T>& values) {
    write_row_raw(path, row, memory_type(T{}), values.data());
  }
  void add_group(const std::string& path);
  void add_strings(const std::string& path, const std::vector<std::string>& values);
  void add_compound(const std::string& path, hsize_t count);
  void add_bool(const std::string& path, const std::vector<std::int8_t>& values);
  void add_external_link(const std::string& path, const std::string& file,
                         const std::string& target);
  void add_soft_link(const std::string& path, const std::string& target);

 private:
  static hid_t memory_type(float) { return H5T_NATIVE_FLOAT; }
  static hid_t memory_type(double) { return H5T_NATIVE_DOUBLE; }
  static hid_t memory_type(std::int8_t) { return H5T_NATIVE_INT8; }
  static hid_t memory_type(std::uint8_t) { return H5T_NATIVE_UINT8; }
  static hid_t memory_type(std::int32_t) { return H5T_NATIVE_INT32; }
  static hid_t memory_type(std::int64_t) { return H5T_NATIVE_INT64; }
  static hid_t memory_type(std::uint64_t) { return H5T_NATIVE_UINT64; }
  void add_raw(const std::string& path, const std::vector<hsize_t>& extents, hid_t stored,
               hid_t memory, const void* values, const FileLayout& layout);
  void write_row_raw(const std::string& path, hsize_t row, hid_t memory, const void* values);

  hid_t file_;
  hid_t links_;
};

// The IEEE half-precision type, little- or big-endian. The caller need not close it.
hid_t half_type(bool big_endian);

}  // namespace annulus::test
