// SPDX-License-Identifier: Apache-2.0
#include "io/idx_import.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "core/error.h"
#include "io/files.h"
#include "io/new_data_file.h"

namespace annulus {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t images_magic = 0x00000803;  // u8, 3 axes
constexpr std::uint32_t labels_magic = 0x00000801;  // u8, 1 axis

// One IDX file: a big-endian magic number, the extents, then the elements.
class IdxFile {
 public:
  IdxFile(std::string path, std::uint32_t magic) : path_(std::move(path)) {
    require_regular_file(path_, ErrorKind::data);
    errno = 0;
    stream_.open(path_, std::ios::binary);
    if (!stream_) fail(ErrorKind::data, "{}", with_errno("cannot read '" + path_ + "'"));
    const std::uint32_t found = word();
    if (found >> 16 == 0x1F8B) {
      fail(ErrorKind::data, "'{}' is compressed; run gunzip on it first", path_);
    }
    if (found != magic) {
      throw Error(ErrorKind::data,
                  fmt::format("'{}' is no IDX file of this kind: magic number", path_))
          .values(fmt::format("0x{:08x}", magic), fmt::format("0x{:08x}", found));
    }
    for (std::uint32_t axis = 0; axis < (magic & 0xFF); ++axis) extents_.push_back(word());
    check_length();
  }

  const std::string& path() const { return path_; }
  std::int64_t count() const { return extents_[0]; }
  std::int64_t extent(std::size_t axis) const { return extents_[axis]; }
  std::int64_t bytes_each() const {
    std::int64_t bytes = 1;
    for (std::size_t i = 1; i < extents_.size(); ++i) bytes *= extents_[i];
    return bytes;
  }
  void read(std::span<std::byte> to) {
    stream_.read(reinterpret_cast<char*>(to.data()), static_cast<std::streamsize>(to.size()));
    require(stream_.good(), ErrorKind::data, "'{}' cannot be read to its end", path_);
  }

 private:
  std::uint32_t word() {
    std::array<unsigned char, 4> bytes{};
    stream_.read(reinterpret_cast<char*>(bytes.data()), bytes.size());
    require(stream_.good(), ErrorKind::data, "'{}' is too short for an IDX header", path_);
    return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 |
           std::uint32_t{bytes[2]} << 8 | std::uint32_t{bytes[3]};
  }

  void check_length() {
    std::int64_t wanted = 1;
    bool too_large = false;
    for (std::int64_t extent : extents_) {
      require(extent > 0, ErrorKind::data, "'{}' is empty: an extent of 0 in its header", path_);
      too_large = too_large || __builtin_mul_overflow(wanted, extent, &wanted);
    }
    require(!too_large, ErrorKind::data, "'{}': the extents in its header are too large", path_);
    const auto header = static_cast<std::int64_t>(4 + 4 * extents_.size());
    const std::int64_t found = file_bytes(path_) - header;
    if (found == wanted) return;
    throw Error(ErrorKind::data,
                fmt::format("'{}' is {}: bytes after the header", path_,
                            found < wanted ? "truncated" : "longer than its header says"))
        .values(std::to_string(wanted), std::to_string(found));
  }

  std::string path_;
  std::ifstream stream_;
  std::vector<std::int64_t> extents_;
};

// Another reason than that it is not there is for whoever opens it to tell.
bool found(const std::string& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

// The path of DIRECTORY/stem-kind with either of the two spellings of its name.
std::optional<std::string> find_idx(const std::string& directory, const std::string& stem,
                                    const std::string& kind) {
  for (const char separator : {'-', '.'}) {
    const fs::path path = fs::path(directory) / fmt::format("{}{}{}", stem, separator, kind);
    if (found(path.string())) return path.string();
    const std::string compressed = path.string() + ".gz";
    require(!found(compressed), ErrorKind::data, "'{}' is compressed; run gunzip on it first",
            compressed);
  }
  return std::nullopt;
}

struct IdxPair {
  std::string part;  // "train" or "test"
  IdxFile images;
  IdxFile labels;
};

std::optional<IdxPair> open_pair(const std::string& directory, const std::string& part,
                                 const std::string& stem) {
  const auto images = find_idx(directory, stem + "-images", "idx3-ubyte");
  const auto labels = find_idx(directory, stem + "-labels", "idx1-ubyte");
  if (!images && !labels) return std::nullopt;
  require(images.has_value(), ErrorKind::data, "'{}' has {}-labels but no {}-images-idx3-ubyte",
          directory, stem, stem);
  require(labels.has_value(), ErrorKind::data, "'{}' has {}-images but no {}-labels-idx1-ubyte",
          directory, stem, stem);
  IdxPair pair{part, IdxFile(*images, images_magic), IdxFile(*labels, labels_magic)};
  if (pair.images.count() != pair.labels.count()) {
    throw Error(ErrorKind::data, fmt::format("images of '{}' and labels of '{}'",
                                             pair.images.path(), pair.labels.path()))
        .values(std::to_string(pair.images.count()), std::to_string(pair.labels.count()));
  }
  return pair;
}

void copy_rows(IdxFile& from, Hdf5Writer& to) {
  constexpr std::int64_t piece_bytes = std::int64_t{4} << 20;
  const std::int64_t piece = std::max<std::int64_t>(piece_bytes / from.bytes_each(), 1);
  std::vector<std::byte> rows;
  for (std::int64_t first = 0; first < from.count(); first += piece) {
    const std::int64_t count = std::min(piece, from.count() - first);
    rows.resize(static_cast<std::size_t>(count * from.bytes_each()));
    from.read(rows);
    to.write_rows(first, count, rows);
  }
}

void copy_pair(IdxPair& pair, Hdf5Writer& to) {
  IdxFile& images = pair.images;
  to.create(pair.part + "/images", Shape{images.count(), 1, images.extent(1), images.extent(2)},
            DType::u8);
  copy_rows(images, to);
  to.create(pair.part + "/labels", Shape{images.count()}, DType::u8);
  copy_rows(pair.labels, to);
}

}  // namespace

void import_idx(const std::string& directory, const std::string& destination,
                const std::function<void()>& check_stop) {
  std::optional<IdxPair> train = open_pair(directory, "train", "train");
  std::optional<IdxPair> test = open_pair(directory, "test", "t10k");
  require(train.has_value(), ErrorKind::data,
          "'{}' has no train-images-idx3-ubyte and train-labels-idx1-ubyte", directory);
  const auto fill = [&](Hdf5Writer& writer) {
    copy_pair(*train, writer);
    if (test) copy_pair(*test, writer);
  };
  const auto bytes_of = [](const IdxPair& pair) {
    return pair.images.count() * (pair.images.bytes_each() + 1);
  };
  write_new_data_file(destination, bytes_of(*train) + (test ? bytes_of(*test) : 0), fill,
                      check_stop);
}

}  // namespace annulus
