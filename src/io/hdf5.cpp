// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <system_error>

#include "io/files.h"

namespace annulus::hdf5 {
namespace {

// HDF5 itself is global, so its lock is too.
std::recursive_mutex& library_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

// What the library says of a failed call, the innermost first.
struct Failure {
  std::vector<hid_t> minors;
  std::vector<std::string> texts;
};

herr_t keep_entry(unsigned, const H5E_error2_t* entry, void* context) {
  auto& failure = *static_cast<Failure*>(context);
  failure.minors.push_back(entry->min_num);
  failure.texts.emplace_back(entry->desc == nullptr ? "" : entry->desc);
  return 0;
}

Failure last_failure() {
  Failure failure;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_entry, &failure);
  return failure;
}

// The number after `name` in a text of the library; the last one, as file names come before it.
std::optional<std::int64_t> number_after(const std::string& text, std::string_view name) {
  const std::size_t at = text.rfind(name);
  if (at == std::string::npos) return std::nullopt;
  const char* begin = text.data() + at + name.size();
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

bool has_minor(const Failure& failure, hid_t minor) {
  return std::find(failure.minors.begin(), failure.minors.end(), minor) != failure.minors.end();
}

std::string reason_of(const Failure& failure) {
  const std::pair<hid_t, const char*> reasons[] = {
      {H5E_NOFILTER, "it needs a filter that this HDF5 library lacks"},
      {H5E_CANTFILTER, "a chunk cannot be unpacked; the file is damaged there"},
      {H5E_TRUNCATED, "the file is truncated"},
      {H5E_NOTHDF5, "it is not an HDF5 file"},
      {H5E_VERSION, "the file is damaged, or of a later version of HDF5"},
      {H5E_CANTALLOC, "HDF5 cannot get the memory for it"},
      {H5E_CANTOPENFILE, "its file cannot be opened"},
  };
  for (const auto& [minor, text] : reasons) {
    if (has_minor(failure, minor)) return text;
  }
  return "the file is damaged there";
}

bool has_float_layout(hid_t type, std::size_t exponent_bits, std::size_t fraction_bits) {
  std::size_t sign = 0, exponent = 0, exponent_size = 0, fraction = 0, fraction_size = 0;
  if (H5Tget_fields(type, &sign, &exponent, &exponent_size, &fraction, &fraction_size) < 0) {
    return false;
  }
  return sign == exponent_bits + fraction_bits && exponent == fraction_bits &&
         exponent_size == exponent_bits && fraction == 0 && fraction_size == fraction_bits &&
         H5Tget_ebias(type) == (std::size_t{1} << (exponent_bits - 1)) - 1 &&
         H5Tget_norm(type) == H5T_NORM_IMPLIED;
}

// Whether all bits count and mean what the hardware's types of that size mean.
bool is_plain(hid_t type, H5T_class_t type_class) {
  const std::size_t bytes = H5Tget_size(type);
  if (H5Tget_precision(type) != 8 * bytes || H5Tget_offset(type) != 0) return false;
  const H5T_order_t order = H5Tget_order(type);
  if (order != H5T_ORDER_LE && order != H5T_ORDER_BE) return false;
  if (type_class == H5T_INTEGER) return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
  return (bytes == 2 && has_float_layout(type, 5, 10)) ||
         (bytes == 4 && has_float_layout(type, 8, 23)) ||
         (bytes == 8 && has_float_layout(type, 11, 52));
}

ElementType::Kind kind_of(hid_t type, H5T_class_t type_class) {
  if (type_class == H5T_FLOAT) return ElementType::Kind::real;
  return H5Tget_sign(type) == H5T_SGN_NONE ? ElementType::Kind::unsigned_integer
                                           : ElementType::Kind::signed_integer;
}

// The widest type of ours, for numbers that the library has to convert.
hid_t widest(ElementType::Kind kind) {
  switch (kind) {
    case ElementType::Kind::unsigned_integer:
      return H5T_NATIVE_UINT64;
    case ElementType::Kind::signed_integer:
      return H5T_NATIVE_INT64;
    default:
      return H5T_NATIVE_DOUBLE;
  }
}

}  // namespace

Lock::Lock() : lock_(library_mutex()) {
  // Without its own clean-up at exit: everything is closed by its owner, and that clean-up crashes
  // where a disk was full. It must be the first call; the others are per thread in some builds.
  H5dont_atexit();
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Handle::~Handle() {
  close();
}

herr_t Handle::close() {
  if (id_ < 0) return 0;
  const Lock lock;
  return close_(std::exchange(id_, -1));
}

int system_error() {
  for (const std::string& text : last_failure().texts) {
    if (const auto code = number_after(text, "errno = ")) return static_cast<int>(*code);
  }
  return 0;
}

std::string reason() {
  const int code = system_error();
  if (code == 0) return reason_of(last_failure());
  return fmt::format("{} (errno {})", std::generic_category().message(code), code);
}

std::string missing_filter(hid_t dataset) {
  const Handle creation(H5Dget_create_plist(dataset), H5Pclose);
  for (int i = 0; i < H5Pget_nfilters(creation.get()); ++i) {
    unsigned flags = 0;
    std::size_t values = 0;
    char name[64] = "";
    const H5Z_filter_t filter = H5Pget_filter2(creation.get(), static_cast<unsigned>(i), &flags,
                                               &values, nullptr, sizeof name, name, nullptr);
    if (filter < 0 || H5Zfilter_avail(filter) > 0) continue;
    return *name == '\0' ? fmt::format("{}", filter) : fmt::format("{} ({})", filter, name);
  }
  return {};
}

Handle owned(hid_t id, Handle::Close close, ErrorKind kind, const std::string& message) {
  if (id < 0) fail(kind, "{}: {}", message, reason());
  return {id, close};
}

void check(herr_t status, ErrorKind kind, const std::string& message) {
  if (status < 0) fail(kind, "{}: {}", message, reason());
}

Handle file_access() {
  Handle access = owned(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, ErrorKind::bug, "HDF5 properties");
  H5Pset_file_locking(access.get(), /*use_file_locking=*/0, /*ignore_when_disabled=*/1);
  return access;
}

Handle open_for_reading(const std::string& path) {
  require_regular_file(path, ErrorKind::data, "data file");
  const Lock lock;
  const Handle access = file_access();
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get());
  if (file >= 0) return {file, H5Fclose};
  const Failure failure = last_failure();
  if (system_error() != 0) fail(ErrorKind::data, "cannot read data file '{}': {}", path, reason());
  if (has_minor(failure, H5E_NOTHDF5)) fail(ErrorKind::data, "'{}' is not an HDF5 file", path);
  if (has_minor(failure, H5E_TRUNCATED)) {
    Error error(ErrorKind::data,
                fmt::format("HDF5 file '{}' is truncated; copy or make it again: bytes", path));
    const auto whole = number_after(failure.texts.front(), "stored_eof = ");
    if (whole) error.values(std::to_string(*whole), std::to_string(file_bytes(path)));
    throw Error(error);
  }
  fail(ErrorKind::data, "cannot open HDF5 file '{}': {}", path, reason_of(failure));
}

std::optional<Numbers> numbers_of(hid_t type) {
  const Lock lock;
  H5T_class_t type_class = H5Tget_class(type);
  Handle base;
  if (type_class == H5T_ENUM) {
    base = Handle(H5Tget_super(type), H5Tclose);
    type_class = H5T_INTEGER;
  }
  if (type_class != H5T_INTEGER && type_class != H5T_FLOAT) return std::nullopt;
  const hid_t number = base ? base.get() : type;

  Numbers numbers;
  numbers.element.kind = kind_of(number, type_class);
  numbers.as_stored = is_plain(number, type_class);
  if (numbers.as_stored) {
    numbers.element.bytes = static_cast<std::uint8_t>(H5Tget_size(number));
    numbers.element.big_endian = H5Tget_order(number) == H5T_ORDER_BE;
    numbers.memory_type = Handle(H5Tcopy(type), H5Tclose);
  } else if (base) {
    return std::nullopt;
  } else {
    numbers.element.bytes = 8;
    numbers.memory_type = Handle(H5Tcopy(widest(numbers.element.kind)), H5Tclose);
  }
  return numbers;
}

std::string type_name(hid_t type) {
  const Lock lock;
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
    case H5T_FLOAT: {
      const auto numbers = numbers_of(type);
      if (numbers && numbers->as_stored) return to_string(numbers->element);
      return fmt::format("{}-bit {}", H5Tget_precision(type),
                         H5Tget_class(type) == H5T_FLOAT ? "float" : "integer");
    }
    case H5T_ENUM: {
      const auto numbers = numbers_of(type);
      return numbers ? "enumeration of " + to_string(numbers->element) : "enumeration";
    }
    case H5T_STRING:
      return H5Tis_variable_str(type) > 0 ? "variable-length string" : "string";
    case H5T_COMPOUND:
      return "compound";
    case H5T_VLEN:
      return "variable-length list";
    case H5T_ARRAY:
      return "array";
    case H5T_BITFIELD:
      return "bit field";
    case H5T_REFERENCE:
      return "reference";
    default:
      return "opaque";
  }
}

std::vector<hsize_t> extents_of(hid_t space) {
  const Lock lock;
  const int rank = H5Sget_simple_extent_ndims(space);
  if (rank <= 0) return {};
  std::vector<hsize_t> extents(static_cast<std::size_t>(rank));
  H5Sget_simple_extent_dims(space, extents.data(), nullptr);
  return extents;
}

}  // namespace annulus::hdf5
