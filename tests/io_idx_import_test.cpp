// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.h"
#include "io/data_file.h"
#include "io/idx_import.h"
#include "support/io_data.h"
#include "support/temp_dir.h"

using namespace annulus;
using namespace annulus::test;
namespace fs = std::filesystem;

namespace {

void write_idx(const std::string& path, std::uint32_t magic, std::vector<std::uint32_t> extents,
               const std::string& elements) {
  std::ofstream file(path, std::ios::binary);
  extents.insert(extents.begin(), magic);
  for (std::uint32_t word : extents) {
    for (int shift : {24, 16, 8, 0}) file.put(static_cast<char>(word >> shift));
  }
  file << elements;
}

// Two training images of 2 x 3 and one test image.
void write_set(const TempDir& dir) {
  write_idx(dir / "train-images-idx3-ubyte", 0x803, {2, 2, 3}, std::string("\0abcdefghijk", 12));
  write_idx(dir / "train-labels-idx1-ubyte", 0x801, {2}, "\x07\x03");
  write_idx(dir / "t10k-images.idx3-ubyte", 0x803, {1, 2, 3}, "\xff\xfe\xfd\xfc\xfb\xfa");
  write_idx(dir / "t10k-labels.idx1-ubyte", 0x801, {1}, std::string(1, '\0'));
}

std::string import_error(const TempDir& dir) {
  try {
    import_idx(dir.path(), dir / "out.h5");
  } catch (const Error& error) {
    REQUIRE_FALSE(fs::exists(dir / "out.h5"));
    return error.kind() == ErrorKind::data ? error.what() : "of another kind";
  }
  return "";
}

std::string at(const TempDir& dir, const char* name) {
  return fmt::format("'{}'", dir / name);
}

}  // namespace

TEST_CASE("IDX files become one HDF5 file with images of one channel") {
  const TempDir dir;
  write_set(dir);
  import_idx(dir.path(), dir / "out.h5");
  const auto train = open_dataset(spec_of(dir / "out.h5", "train/images", "train/labels"),
                                  demand_of({1, 2, 3}, 10));
  const ReadBatch batch = read(*train, std::vector<std::int64_t>{1, 0});
  CHECK(batch.inputs ==
        std::vector<float>{'f', 'g', 'h', 'i', 'j', 'k', 0, 'a', 'b', 'c', 'd', 'e'});
  CHECK(batch.class_ids == std::vector<std::int32_t>{3, 7});
  const auto test =
      open_dataset(spec_of(dir / "out.h5", "test/images", "test/labels"), demand_of({1, 2, 3}, 10));
  CHECK(read(*test, std::vector<std::int64_t>{0}).inputs ==
        std::vector<float>{255, 254, 253, 252, 251, 250});
  const std::vector<DatasetInfo> infos = describe_file(dir / "out.h5");
  REQUIRE(infos.size() == 4);
  CHECK(infos[2].path == "train/images");
  CHECK(extents_text(infos[2].extents) == "(2, 1, 2, 3)");
  CHECK(infos[2].type == "u8");
}

TEST_CASE("IDX files without a test pair give a training set alone") {
  const TempDir dir;
  write_set(dir);
  fs::remove(dir / "t10k-images.idx3-ubyte");
  CHECK(import_error(dir).find("has t10k-labels but no t10k-images-idx3-ubyte") !=
        std::string::npos);
  fs::remove(dir / "t10k-labels.idx1-ubyte");
  import_idx(dir.path(), dir / "out.h5");
  CHECK(describe_file(dir / "out.h5").size() == 2);
}

TEST_CASE("an import never overwrites and leaves nothing else behind") {
  const TempDir dir;
  write_set(dir);
  std::ofstream(dir / "out.h5") << "mine";
  CHECK_THROWS_WITH_AS(import_idx(dir.path(), dir / "out.h5"), doctest::Contains("exists"), Error);
  CHECK(fs::file_size(dir / "out.h5") == 4);
  CHECK(dir.names().size() == 5);
}

TEST_CASE("IDX files that are not as they should be are refused with both values") {
  const TempDir dir;
  const char* images = "train-images-idx3-ubyte";
  const char* labels = "train-labels-idx1-ubyte";
  const auto fresh = [&] { write_set(dir); };

  CHECK(import_error(dir).find("has no train-images-idx3-ubyte and") != std::string::npos);
  fresh();
  write_idx(dir / images, 0x801, {2}, "ab");
  CHECK(import_error(dir) == at(dir, images) +
                                 " is no IDX file of this kind: magic number: expected 0x00000803, "
                                 "found 0x00000801");
  fresh();
  fs::resize_file(dir / images, 27);
  CHECK(import_error(dir) ==
        at(dir, images) + " is truncated: bytes after the header: expected 12, found 11");
  fs::resize_file(dir / images, 30);
  CHECK(import_error(dir) ==
        at(dir, images) +
            " is longer than its header says: bytes after the header: expected 12, found 14");
  fs::resize_file(dir / images, 9);
  CHECK(import_error(dir) == at(dir, images) + " is too short for an IDX header");
  fresh();
  write_idx(dir / labels, 0x801, {3}, "abc");
  CHECK(import_error(dir).find("expected 2, found 3") != std::string::npos);
  write_idx(dir / labels, 0x801, {0}, "");
  CHECK(import_error(dir).find("is empty: an extent of 0") != std::string::npos);
  fresh();
  write_idx(dir / images, 0x803, {~0U, ~0U, ~0U}, "");
  CHECK(import_error(dir).find("extents in its header are too large") != std::string::npos);
  fresh();
  std::ofstream(dir / images, std::ios::binary) << "\x1f\x8b\x08\x08 compressed";
  CHECK(import_error(dir) == at(dir, images) + " is compressed; run gunzip on it first");
  fs::rename(dir / images, dir / "train-images-idx3-ubyte.gz");
  CHECK(import_error(dir) ==
        at(dir, "train-images-idx3-ubyte.gz") + " is compressed; run gunzip on it first");
}
