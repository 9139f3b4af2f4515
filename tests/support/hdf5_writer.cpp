// SPDX-License-Identifier: Apache-2.0
#include "support/hdf5_writer.h"

#include <stdexcept>

namespace annulus::test {
namespace {

// A test must not go on with a file that is not as it says.
hid_t must(hid_t id) {
  if (id < 0) throw std::runtime_error("HDF5 call of a test failed");
  return id;
}

}  // namespace

TestFile::TestFile(const std::string& path)
    : file_(must(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT))),
      links_(must(H5Pcreate(H5P_LINK_CREATE))) {
  must(H5Pset_create_intermediate_group(links_, 1));
}

TestFile::~TestFile() {
  H5Pclose(links_);
  H5Fclose(file_);
}

void TestFile::add_raw(const std::string& path, const std::vector<hsize_t>& extents, hid_t stored,
                       hid_t memory, const void* values, const FileLayout& layout) {
  const hid_t space = must(extents.empty() ? H5Screate(H5S_SCALAR)
                                           : H5Screate_simple(static_cast<int>(extents.size()),
                                                              extents.data(), nullptr));
  const hid_t creation = must(H5Pcreate(H5P_DATASET_CREATE));
  if (!layout.chunk.empty()) {
    must(H5Pset_chunk(creation, static_cast<int>(layout.chunk.size()), layout.chunk.data()));
  }
  if (layout.deflate) must(H5Pset_deflate(creation, 4));
  if (layout.filter != 0) {
    must(H5Pset_filter(creation, layout.filter, H5Z_FLAG_OPTIONAL, 0, nullptr));
  }
  const hid_t dataset =
      must(H5Dcreate2(file_, path.c_str(), stored, space, links_, creation, H5P_DEFAULT));
  if (values != nullptr) must(H5Dwrite(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
  must(H5Dclose(dataset));
  H5Pclose(creation);
  H5Sclose(space);
}

void TestFile::add_empty(const std::string& path, std::vector<hsize_t> extents, hid_t stored,
                         const FileLayout& layout) {
  add_raw(path, extents, stored, stored, nullptr, layout);
}

void TestFile::write_row_raw(const std::string& path, hsize_t row, hid_t memory,
                             const void* values) {
  const hid_t dataset = must(H5Dopen2(file_, path.c_str(), H5P_DEFAULT));
  const hid_t space = must(H5Dget_space(dataset));
  std::vector<hsize_t> start(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space)), 0);
  std::vector<hsize_t> extents(start.size());
  H5Sget_simple_extent_dims(space, extents.data(), nullptr);
  start[0] = row;
  extents[0] = 1;
  must(H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, extents.data(), nullptr));
  const hid_t part =
      must(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr));
  must(H5Dwrite(dataset, memory, part, space, H5P_DEFAULT, values));
  H5Sclose(part);
  H5Sclose(space);
  must(H5Dclose(dataset));
}

void TestFile::add_group(const std::string& path) {
  H5Gclose(must(H5Gcreate2(file_, path.c_str(), links_, H5P_DEFAULT, H5P_DEFAULT)));
}

void TestFile::add_strings(const std::string& path, const std::vector<std::string>& values) {
  const hid_t type = must(H5Tcopy(H5T_C_S1));
  must(H5Tset_size(type, H5T_VARIABLE));
  std::vector<const char*> texts;
  for (const std::string& value : values) texts.push_back(value.c_str());
  add_raw(path, {values.size()}, type, type, texts.data(), {});
  H5Tclose(type);
}

void TestFile::add_compound(const std::string& path, hsize_t count) {
  const hid_t type = must(H5Tcreate(H5T_COMPOUND, 8));
  must(H5Tinsert(type, "id", 0, H5T_NATIVE_INT32));
  must(H5Tinsert(type, "weight", 4, H5T_NATIVE_FLOAT));
  add_raw(path, {count}, type, type, nullptr, {});
  H5Tclose(type);
}

void TestFile::add_bool(const std::string& path, const std::vector<std::int8_t>& values) {
  const hid_t type = must(H5Tenum_create(H5T_STD_I8LE));
  const std::int8_t no = 0;
  const std::int8_t yes = 1;
  must(H5Tenum_insert(type, "FALSE", &no));
  must(H5Tenum_insert(type, "TRUE", &yes));
  add_raw(path, {values.size()}, type, type, values.data(), {});
  H5Tclose(type);
}

void TestFile::add_external_link(const std::string& path, const std::string& file,
                                 const std::string& target) {
  must(H5Lcreate_external(file.c_str(), target.c_str(), file_, path.c_str(), links_, H5P_DEFAULT));
}

void TestFile::add_soft_link(const std::string& path, const std::string& target) {
  must(H5Lcreate_soft(target.c_str(), file_, path.c_str(), links_, H5P_DEFAULT));
}

hid_t half_type(bool big_endian) {
  const hid_t type = must(H5Tcopy(big_endian ? H5T_IEEE_F32BE : H5T_IEEE_F32LE));
  must(H5Tset_fields(type, 15, 10, 5, 0, 10));
  must(H5Tset_size(type, 2));
  must(H5Tset_ebias(type, 15));
  return type;
}

}  // namespace annulus::test
