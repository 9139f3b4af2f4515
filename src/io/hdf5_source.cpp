// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5_source.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/hdf5.h"
#include "io/hdf5_chunks.h"
#include "io/hdf5_list.h"

namespace annulus {
namespace {

// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

std::string file_name_of(hid_t object) {
  const ssize_t length = H5Fget_name(object, nullptr, 0);
  if (length <= 0) return {};
  std::string name(static_cast<std::size_t>(length), '\0');
  H5Fget_name(object, name.data(), name.size() + 1);
  return name;
}

// A cache that holds a few chunks, so that rows of the same chunk are decompressed once.
hdf5::Handle access_for(hid_t dataset, std::size_t element_bytes) {
  constexpr std::size_t least = std::size_t{1} << 20;
  constexpr std::size_t most = std::size_t{64} << 20;
  const hdf5::Handle creation(H5Dget_create_plist(dataset), H5Pclose);
  hdf5::Handle access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
  hsize_t chunk[H5S_MAX_RANK];
  const int rank = H5Pget_chunk(creation.get(), H5S_MAX_RANK, chunk);
  std::size_t bytes = element_bytes;
  for (int i = 0; i < rank; ++i) {
    if (__builtin_mul_overflow(bytes, chunk[i], &bytes)) bytes = most;
  }
  H5Pset_chunk_cache(access.get(), 521, std::clamp(std::min(bytes, most) * 8, least, most), 0.75);
  return access;
}

}  // namespace

struct Hdf5Source::State {
  std::string file;
  std::string dataset;
  Shape shape;
  ElementType element;
  std::size_t row_bytes = 0;

  hdf5::Handle file_id;
  hdf5::Handle dataset_id;
  hdf5::Handle memory_type;
  hdf5::Handle file_space;

  // Where the rows lie in `direct`, which is open if they may be read past the library.
  Descriptor direct;
  std::int64_t offset = 0;
  std::optional<hdf5::Chunks> chunks;  // instead, where they lie in chunks

  std::string title() const { return fmt::format("data set '{}' of '{}'", dataset, file); }

  void open_object() {
    const hid_t object = H5Oopen(file_id.get(), dataset.c_str(), H5P_DEFAULT);
    if (object < 0) fail_missing();
    const hdf5::Handle handle(object, H5Oclose);
    if (H5Iget_type(object) != H5I_DATASET) {
      fail(ErrorKind::data, "'{}' of '{}' is a group, not a data set; {}", dataset, file,
           hdf5::contents_text(file_id.get(), file));
    }
    const hdf5::Handle stored(H5Dget_type(object), H5Tclose);
    const hdf5::Handle access = access_for(object, H5Tget_size(stored.get()));
    dataset_id = hdf5::owned(H5Dopen2(file_id.get(), dataset.c_str(), access.get()), H5Dclose,
                             ErrorKind::data, "cannot open " + title());
    check_filters();
  }

  void check_filters() const {
    const std::string filter = hdf5::missing_filter(dataset_id.get());
    require(filter.empty(), ErrorKind::data,
            "{} is stored with filter {}, which this HDF5 library lacks; store it without, or with "
            "gzip",
            title(), filter);
  }

  // A link that is there but leads nowhere is another fault than a wrong name.
  [[noreturn]] void fail_missing() const {
    const std::string why = hdf5::broken_link_text(file_id.get(), dataset);
    if (H5Lexists(file_id.get(), dataset.c_str(), H5P_DEFAULT) > 0) {
      fail(ErrorKind::data, "{} is a link that cannot be followed: {}", title(), why);
    }
    fail(ErrorKind::data, "no data set '{}' in '{}'; {}", dataset, file,
         hdf5::contents_text(file_id.get(), file));
  }

  void read_type() {
    const hdf5::Handle type(H5Dget_type(dataset_id.get()), H5Tclose);
    std::optional<hdf5::Numbers> numbers = hdf5::numbers_of(type.get());
    require(numbers.has_value(), ErrorKind::data,
            "{}: element type {} is not usable; numbers are needed", title(),
            hdf5::type_name(type.get()));
    element = numbers->element;
    memory_type = std::move(numbers->memory_type);
    if (numbers->as_stored) find_direct();
  }

  void read_shape() {
    file_space = hdf5::Handle(H5Dget_space(dataset_id.get()), H5Sclose);
    const std::vector<hsize_t> extents = hdf5::extents_of(file_space.get());
    require(!extents.empty(), ErrorKind::data, "{} is a scalar; its first axis must be the samples",
            title());
    require(extents.size() <= Shape::max_rank, ErrorKind::data, "{} has {} axes; at most {} can be",
            title(), extents.size(), Shape::max_rank);
    const std::string text = fmt::format("({})", fmt::join(extents, ", "));
    std::int64_t bytes = sizeof(double);
    for (hsize_t extent : extents) {
      require(extent > 0, ErrorKind::data, "{} has no {}: its shape is {}", title(),
              extents[0] == 0 ? "samples" : "values", text);
      const bool too_many = __builtin_mul_overflow(bytes, extent, &bytes);
      require(!too_many, ErrorKind::data, "{}: its shape {} is too large", title(), text);
    }
    const std::vector<std::int64_t> sizes(extents.begin(), extents.end());
    shape = Shape(sizes);
    check_chunks();
  }

  // No writer makes chunks that are larger than the data set can become. A damaged file may have
  // them; the library would read beyond its memory.
  void check_chunks() const {
    const hdf5::Handle creation(H5Dget_create_plist(dataset_id.get()), H5Pclose);
    hsize_t chunk[H5S_MAX_RANK];
    hsize_t most[H5S_MAX_RANK];
    const int rank = H5Pget_chunk(creation.get(), H5S_MAX_RANK, chunk);
    if (rank <= 0) return;
    H5Sget_simple_extent_dims(file_space.get(), nullptr, most);
    for (int i = 0; i < rank; ++i) {
      require(chunk[i] <= most[i], ErrorKind::data,  // an unlimited axis has the largest number
              "{} is damaged: chunks of {} along an axis of {}", title(), chunk[i], most[i]);
    }
  }

  // Data of known place and without filters: contiguous, or in chunks of whole rows. Through an
  // external link the place is in another file than the one that was opened.
  void find_direct() {
    const hdf5::Handle creation(H5Dget_create_plist(dataset_id.get()), H5Pclose);
    if (H5Pget_external_count(creation.get()) != 0) return;
    const bool contiguous = H5Pget_layout(creation.get()) == H5D_CONTIGUOUS;
    const haddr_t place = contiguous ? H5Dget_offset(dataset_id.get()) : HADDR_UNDEF;
    if (contiguous && place == HADDR_UNDEF) return;
    chunks = hdf5::Chunks::of(dataset_id.get(), shape, row_bytes_of());
    if (!contiguous && !chunks) return;
    Descriptor opened(::open(file_name_of(dataset_id.get()).c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status {};
    if (opened.get() < 0 || ::fstat(opened.get(), &status) != 0) return;
    if (contiguous) check_end(static_cast<std::int64_t>(place), status.st_size);
    direct = std::move(opened);
  }

  void check_end(std::int64_t place, std::int64_t file_bytes) {
    offset = place;
    const std::int64_t bytes = static_cast<std::int64_t>(row_bytes_of()) * shape[0];
    if (offset > file_bytes || bytes > file_bytes - offset) {
      throw Error(ErrorKind::data, title() + " reaches beyond the end of the file")
          .values(fmt::format("{} bytes at {}", bytes, offset),
                  fmt::format("{} bytes in the file", file_bytes));
    }
  }

  std::size_t row_bytes_of() const {
    return static_cast<std::size_t>(shape.elements_from(1)) * element.bytes;
  }

  void read_direct(std::int64_t first, std::int64_t count, std::span<std::byte> to) const {
    if (!chunks) {
      read_at(offset + first * static_cast<std::int64_t>(row_bytes), to);
      return;
    }
    while (count > 0) {
      const std::int64_t rows = chunks->together(first, count);
      const std::span<std::byte> part = to.first(static_cast<std::size_t>(rows) * row_bytes);
      if (const auto place = chunks->place_of(dataset_id.get(), first)) {
        read_at(*place, part);
      } else {
        read_through_library(first, rows, part.data());
      }
      to = to.subspan(part.size());
      first += rows;
      count -= rows;
    }
  }

  void read_at(std::int64_t at, std::span<std::byte> to) const {
    while (!to.empty()) {
      const ssize_t got = ::pread(direct.get(), to.data(), to.size(), at);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail(ErrorKind::data, "{}", with_errno("cannot read " + title()));
      if (got == 0) fail(ErrorKind::data, "{} was truncated while in use: no byte {}", title(), at);
      to = to.subspan(static_cast<std::size_t>(got));
      at += got;
    }
  }

  void read_through_library(std::int64_t first, std::int64_t count, std::byte* to) const {
    hsize_t start[Shape::max_rank] = {static_cast<hsize_t>(first)};
    hsize_t extents[Shape::max_rank] = {static_cast<hsize_t>(count)};
    for (std::size_t i = 1; i < shape.rank(); ++i) extents[i] = static_cast<hsize_t>(shape[i]);
    const hdf5::Lock lock;
    const hdf5::Handle memory(H5Screate_simple(static_cast<int>(shape.rank()), extents, nullptr),
                              H5Sclose);
    const bool good = memory &&
                      H5Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, start, nullptr, extents,
                                          nullptr) >= 0 &&
                      H5Dread(dataset_id.get(), memory_type.get(), memory.get(), file_space.get(),
                              H5P_DEFAULT, to) >= 0;
    // Texts are made for errors only: this runs for every batch.
    if (good) return;
    const std::string why = hdf5::reason();
    fail(ErrorKind::data, "cannot read samples {} to {} of {}: {}", first, first + count - 1,
         title(), why);
  }
};

Hdf5Source::Hdf5Source(std::string file, std::string dataset) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.file = std::move(file);
  s.dataset = std::move(dataset);
  const hdf5::Lock lock;
  s.file_id = hdf5::open_for_reading(s.file);
  s.open_object();
  s.read_shape();
  s.read_type();
  s.row_bytes = s.row_bytes_of();
}

Hdf5Source::~Hdf5Source() = default;
Hdf5Source::Hdf5Source(Hdf5Source&&) noexcept = default;

const std::string& Hdf5Source::file() const {
  return state_->file;
}
const std::string& Hdf5Source::dataset() const {
  return state_->dataset;
}
std::string Hdf5Source::title() const {
  return state_->title();
}
const Shape& Hdf5Source::shape() const {
  return state_->shape;
}
ElementType Hdf5Source::element() const {
  return state_->element;
}
std::size_t Hdf5Source::row_bytes() const {
  return state_->row_bytes;
}
const char* Hdf5Source::way() const {
  if (state_->direct.get() < 0) return "library";
  return state_->chunks ? "chunk offsets" : "offsets";
}

void Hdf5Source::read(std::int64_t first, std::int64_t count, std::span<std::byte> to) const {
  if (first < 0 || count < 0 || count > rows() - first) {
    fail(ErrorKind::bug, "rows {} to {} of {} with {} rows", first, first + count - 1, title(),
         rows());
  }
  require_equal(static_cast<std::size_t>(count) * row_bytes(), to.size(), "bytes to read into");
  if (to.empty()) return;
  if (state_->direct.get() >= 0) {
    state_->read_direct(first, count, to);
  } else {
    state_->read_through_library(first, count, to.data());
  }
}

}  // namespace annulus
