// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5_list.h"

#include <algorithm>
#include <exception>

#include <fmt/ranges.h>

#include "io/file_entries.h"

namespace annulus {

std::string extents_text(const std::vector<std::int64_t>& extents) {
  if (extents.empty()) return "scalar";
  return fmt::format("({})", fmt::join(extents, ", "));
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

FileEntry entry_of(hid_t file, const std::string& path) {
  FileEntry entry;
  entry.info.path = path;
  const Handle object(H5Oopen(file, path.c_str(), H5P_DEFAULT), H5Oclose);
  if (!object) {
    entry.kind = FileEntry::Kind::broken;
    entry.info.type = "a link that cannot be followed: " + broken_link_text(file, path);
  } else if (H5Iget_type(object.get()) == H5I_DATASET) {
    entry.info = info_of(object.get(), path);
    entry.missing_filter = missing_filter(object.get());
  } else {
    const bool group = H5Iget_type(object.get()) == H5I_GROUP;
    entry.kind = group ? FileEntry::Kind::group : FileEntry::Kind::type;
    entry.info.type = group ? "a group" : "a named type";
  }
  return entry;
}

std::vector<FileEntry> entries(hid_t file, const std::string& name) {
  const Lock lock;
  Links links;
  const herr_t status = H5Lvisit(file, H5_INDEX_NAME, H5_ITER_NATIVE, keep_link, &links);
  if (links.error) std::rethrow_exception(links.error);
  check(status, ErrorKind::data, fmt::format("cannot list what '{}' has", name));
  std::sort(links.paths.begin(), links.paths.end());
  std::vector<FileEntry> entries;
  for (const std::string& path : links.paths) entries.push_back(entry_of(file, path));
  return entries;
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

std::string broken_link_text(hid_t file, const std::string& path) {
  const Lock lock;
  std::string why = reason();
  H5L_info_t info;
  if (H5Lget_info(file, path.c_str(), &info, H5P_DEFAULT) < 0 || info.type == H5L_TYPE_HARD) {
    return why;
  }
  std::string value(info.u.val_size, '\0');
  if (H5Lget_val(file, path.c_str(), value.data(), value.size(), H5P_DEFAULT) < 0) return why;
  if (info.type == H5L_TYPE_SOFT) return fmt::format("'{}' is not there", value.c_str());
  const char* other = nullptr;
  const char* target = nullptr;
  if (H5Lunpack_elink_val(value.data(), value.size(), nullptr, &other, &target) < 0) return why;
  return fmt::format("'{}' of '{}' cannot be opened", target, other);
}

std::vector<DatasetInfo> list(hid_t file, const std::string& name) {
  std::vector<DatasetInfo> infos;
  for (FileEntry& entry : entries(file, name)) {
    if (entry.kind == FileEntry::Kind::dataset) infos.push_back(std::move(entry.info));
  }
  return infos;
}

std::string contents_text(hid_t file, const std::string& name) {
  constexpr std::size_t shown = 12;
  const std::vector<DatasetInfo> infos = list(file, name);
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

std::vector<DatasetInfo> describe_file(const std::string& path) {
  const hdf5::Lock lock;
  const hdf5::Handle file = hdf5::open_for_reading(path);
  return hdf5::list(file.get(), path);
}

std::vector<FileEntry> entries_of_file(const std::string& path) {
  const hdf5::Lock lock;
  const hdf5::Handle file = hdf5::open_for_reading(path);
  return hdf5::entries(file.get(), path);
}

}  // namespace annulus
