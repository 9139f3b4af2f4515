// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5_list.h"

#include <algorithm>
#include <exception>

#include <fmt/ranges.h>

namespace annulus {

std::string extents_text(const std::vector<std::int64_t>& extents) {
  if (extents.empty()) return "scalar";
  return fmt::format("({})", fmt::join(extents, ", "));
}

std::vector<DatasetInfo> describe_file(const std::string& path) {
  const hdf5::Lock lock;
  const hdf5::Handle file = hdf5::open_for_reading(path);
  return hdf5::list(file.get());
}

namespace hdf5 {
namespace {

// No exception may pass through the library: what goes wrong here is kept for the caller.
struct Links {
  std::vector<std::string> paths;
  std::exception_ptr error;
};

herr_t keep_link(hid_t, const char* path, const H5L_info_t*, void* context) {
  auto& links = *static_cast<Links*>(context);
  try {
    links.paths.emplace_back(path);
    return 0;
  } catch (...) {
    links.error = std::current_exception();
    return -1;
  }
}

std::string filter_names(hid_t creation) {
  std::string names;
  for (int i = 0; i < H5Pget_nfilters(creation); ++i) {
    unsigned flags = 0;
    std::size_t values = 0;
    char name[64] = "";
    H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &values, nullptr, sizeof name, name,
                   nullptr);
    names += ' ';
    names += name;
  }
  return names;
}

std::string layout_of(hid_t dataset) {
  const Handle creation(H5Dget_create_plist(dataset), H5Pclose);
  switch (H5Pget_layout(creation.get())) {
    case H5D_CONTIGUOUS:
      return "contiguous";
    case H5D_COMPACT:
      return "compact";
    case H5D_CHUNKED: {
      hsize_t chunk[H5S_MAX_RANK];
      const int rank = H5Pget_chunk(creation.get(), H5S_MAX_RANK, chunk);
      return fmt::format("chunked {}{}", fmt::join(chunk, chunk + std::max(rank, 0), "x"),
                         filter_names(creation.get()));
    }
    default:
      return "virtual";
  }
}

}  // namespace

DatasetInfo info_of(hid_t dataset, const std::string& path) {
  const Handle type(H5Dget_type(dataset), H5Tclose);
  const Handle space(H5Dget_space(dataset), H5Sclose);
  DatasetInfo info;
  info.path = path;
  for (hsize_t extent : extents_of(space.get())) {
    info.extents.push_back(static_cast<std::int64_t>(extent));
  }
  info.type = type_name(type.get());
  info.layout = layout_of(dataset);
  info.stored_bytes = static_cast<std::int64_t>(H5Dget_storage_size(dataset));
  return info;
}

std::vector<DatasetInfo> list(hid_t file) {
  const Lock lock;
  Links links;
  const herr_t status = H5Lvisit(file, H5_INDEX_NAME, H5_ITER_NATIVE, keep_link, &links);
  if (links.error) std::rethrow_exception(links.error);
  check(status, ErrorKind::data, "cannot list the contents of the HDF5 file");
  std::sort(links.paths.begin(), links.paths.end());

  std::vector<DatasetInfo> infos;
  for (const std::string& path : links.paths) {
    const Handle object(H5Oopen(file, path.c_str(), H5P_DEFAULT), H5Oclose);
    if (object && H5Iget_type(object.get()) == H5I_DATASET) {
      infos.push_back(info_of(object.get(), path));
    }
  }
  return infos;
}

std::string contents_text(hid_t file) {
  constexpr std::size_t shown = 12;
  const std::vector<DatasetInfo> infos = list(file);
  if (infos.empty()) return "it has no data set";
  std::string text = "it has: ";
  for (std::size_t i = 0; i < std::min(shown, infos.size()); ++i) {
    if (i > 0) text += ", ";
    text += fmt::format("{} {} {}", infos[i].path, extents_text(infos[i].extents), infos[i].type);
  }
  if (infos.size() > shown) text += fmt::format(" and {} more", infos.size() - shown);
  return text;
}

}  // namespace hdf5
}  // namespace annulus
