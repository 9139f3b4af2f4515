// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5.h"

#include <algorithm>
#include <cerrno>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace annulus::hdf5 {
namespace {

// HDF5 itself is global, so its lock is too.
std::recursive_mutex& library_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

herr_t keep_innermost(unsigned, const H5E_error2_t* entry, void* text) {
  auto& reason = *static_cast<std::string*>(text);
  if (reason.empty() && entry->desc != nullptr) reason = entry->desc;
  return 0;
}

// "No space left on device (errno 28)" of a message that has it among file names and addresses.
std::string system_error_in(const std::string& text) {
  const auto between = [&](std::string_view before, char end) {
    const std::size_t begin = text.find(before);
    if (begin == std::string::npos) return std::string();
    const std::size_t from = begin + before.size();
    return text.substr(from, text.find(end, from) - from);
  };
  const std::string number = between("errno = ", ',');
  const std::string words = between("error message = '", '\'');
  return number.empty() || words.empty() ? std::string()
                                         : fmt::format("{} (errno {})", words, number);
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

void check_readable(const std::string& path) {
  struct stat status {};
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail(ErrorKind::data, "{}", with_errno("cannot read data file '" + path + "'"));
  const bool known = ::fstat(file, &status) == 0;
  ::close(file);
  require(known && S_ISREG(status.st_mode), ErrorKind::data, "data file '{}' is not a regular file",
          path);
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

std::string reason() {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_innermost, &text);
  if (std::string system = system_error_in(text); !system.empty()) return system;
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text.empty() ? "no reason given by HDF5" : text.substr(0, 200);
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
  check_readable(path);
  const Lock lock;
  const Handle access = file_access();
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get());
  if (file >= 0) return {file, H5Fclose};
  const std::string why = reason();
  if (why.find("signature") != std::string::npos) {
    fail(ErrorKind::data, "'{}' is not an HDF5 file", path);
  }
  if (why.find("truncated") != std::string::npos) {
    fail(ErrorKind::data, "HDF5 file '{}' is truncated ({}); copy or make it again", path, why);
  }
  fail(ErrorKind::data, "cannot open HDF5 file '{}': {}", path, why);
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
