// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "io/dataset.h"
#include "support/hdf5_writer.h"
#include "support/io_data.h"
#include "support/temp_dir.h"

using namespace annulus;
using namespace annulus::test;
namespace fs = std::filesystem;

namespace {

// 100 samples of 3 x 8 x 8 with labels, and things that are none.
void write_file(const std::string& path) {
  TestFile file(path);
  file.add<float>("train/image", {100, 3, 8, 8}, H5T_IEEE_F32LE, std::vector<float>(19200, 0.5F));
  file.add<std::int64_t>("train/labels", {100}, H5T_STD_I64LE, std::vector<std::int64_t>(100));
  file.add<std::int64_t>("train/labels99", {99}, H5T_STD_I64LE, std::vector<std::int64_t>(99));
  file.add_empty("empty/images", {0, 3, 8, 8}, H5T_IEEE_F32LE);
  file.add_empty("no_values", {100, 0}, H5T_IEEE_F32LE);
  file.add<float>("scalar", {}, H5T_IEEE_F32LE, std::vector<float>{1});
  file.add_empty("seven_axes", {1, 1, 1, 1, 1, 1, 1}, H5T_IEEE_F32LE);
  file.add_external_link("external", "missing.h5", "/x");
  file.add_soft_link("soft", "/nowhere");
}

std::string input_error(const TempDir& dir, const std::string& path) {
  return error_of(spec_of(dir / "a.h5", path, "train/labels"), demand_of({3, 8, 8}, 10));
}

int kind_of_error(const DataSpec& spec, const DataDemand& demand) {
  try {
    open_dataset(spec, demand);
  } catch (const Error& error) {
    return error.exit_code();
  }
  return 0;
}

}  // namespace

TEST_CASE("B71 a missing data set is named with what the file has") {
  const TempDir dir;
  {
    TestFile file(dir / "a.h5");
    file.add<float>("train/image", {100, 3, 8, 8}, H5T_IEEE_F32LE, std::vector<float>(19200));
    file.add<std::int64_t>("train/labels", {100}, H5T_STD_I64LE, std::vector<std::int64_t>(100));
  }
  const std::string has = "; it has: train/image (100, 3, 8, 8) f32, train/labels (100) i64";
  CHECK(input_error(dir, "/train/images") ==
        "no data set '/train/images' in '" + dir / "a.h5" + "'" + has);
  CHECK(input_error(dir, "train") ==
        "'train' of '" + dir / "a.h5" + "' is a group, not a data set" + has);
  CHECK(input_error(dir, "no/such/group").find("no data set 'no/such/group'") == 0);
  CHECK(kind_of_error(spec_of(dir / "a.h5", "y", ""), demand_of({3, 8, 8}, 10)) == 3);
}

TEST_CASE("B71 unequal lengths, scalars, broken links: one line each") {
  const TempDir dir;
  write_file(dir / "a.h5");
  const std::string of = "' of '" + dir / "a.h5" + "' ";
  CHECK(
      error_of(spec_of(dir / "a.h5", "train/image", "train/labels99"), demand_of({3, 8, 8}, 10)) ==
      "100 samples but 99 labels: 'train/image' and 'train/labels99' of '" + dir / "a.h5" + "'");
  CHECK(input_error(dir, "scalar") ==
        "data set 'scalar" + of + "is a scalar; its first axis must be the samples");
  CHECK(input_error(dir, "seven_axes") ==
        "data set 'seven_axes" + of + "has 7 axes; at most 6 can be");
  CHECK(input_error(dir, "external") ==
        "data set 'external" + of +
            "is a link that cannot be followed: '/x' of 'missing.h5' cannot be opened");
  CHECK(input_error(dir, "soft") ==
        "data set 'soft" + of + "is a link that cannot be followed: '/nowhere' is not there");
  CHECK(error_of(spec_of(dir / "a.h5", "train/image", ""), demand_of({3, 8, 8}, 10)) ==
        "the loss needs targets: set `labels` to their data set in '" + dir / "a.h5" + "'");
}

TEST_CASE("B44 B71 a data set without samples is an error, not a result of 0 or NaN") {
  const TempDir dir;
  write_file(dir / "a.h5");
  const std::string of = "' of '" + dir / "a.h5" + "' ";
  CHECK(input_error(dir, "empty/images") ==
        "data set 'empty/images" + of + "has no samples: its shape is (0, 3, 8, 8)");
  CHECK(input_error(dir, "no_values") ==
        "data set 'no_values" + of + "has no values: its shape is (100, 0)");
}

TEST_CASE("files that cannot be used") {
  const TempDir dir;
  const auto error_for = [&](const std::string& path) {
    return error_of(spec_of(path, "x", ""), demand_of({1}, 1));
  };
  CHECK(error_for(dir / "none.h5") ==
        "cannot read data file '" + dir / "none.h5" + "': No such file or directory (errno 2)");
  CHECK(error_for(dir.path()) == "data file '" + dir.path() + "' is not a regular file");
  std::ofstream(dir / "text.h5") << "just a text";
  CHECK(error_for(dir / "text.h5") == fmt::format("'{}' is not an HDF5 file", dir / "text.h5"));
  std::ofstream(dir / "zero.h5").flush();
  CHECK(error_for(dir / "zero.h5") == fmt::format("'{}' is not an HDF5 file", dir / "zero.h5"));
  CHECK(kind_of_error(spec_of(dir / "none.h5", "x", ""), demand_of({1}, 1)) == 3);
}

TEST_CASE("what is no regular file is not waited for") {
  const TempDir dir;
  REQUIRE(::mkfifo((dir / "pipe").c_str(), 0600) == 0);
  fs::create_symlink("loop", dir / "loop");
  const std::string name(300, 'n');
  const auto error_for = [&](const std::string& path) {
    return error_of(spec_of(path, "x", ""), demand_of({1}, 1));
  };
  CHECK(error_for(dir / "pipe") == "data file '" + dir / "pipe" + "' is not a regular file");
  CHECK(error_for("/dev/zero") == "data file '/dev/zero' is not a regular file");
  CHECK(error_for(dir / "loop") == "cannot read data file '" + dir / "loop" +
                                       "': Too many levels of symbolic links (errno 40)");
  CHECK(error_for(dir / name) ==
        "cannot read data file '" + dir / name + "': File name too long (errno 36)");
}

TEST_CASE("a filter that the library lacks is named when the data set is opened") {
  const TempDir dir;
  TestFile(dir / "a.h5").add_empty("x", {4, 1}, H5T_STD_U8LE, {{4, 1}, false, 32000});
  CHECK(error_of(spec_of(dir / "a.h5", "x", ""), demand_of({1}, 1)) ==
        "data set 'x' of '" + dir / "a.h5" +
            "' is stored with filter 32000, which this HDF5 library lacks; store it without, or "
            "with gzip");
}

TEST_CASE("a damaged chunk is told without the words of the library") {
  const TempDir dir;
  const std::string path = dir / "errno = 5, x.h5";  // a name like what the library says
  {
    TestFile file(path);
    file.add<float>("x", {64, 64}, H5T_IEEE_F32LE, std::vector<float>(4096, 1), {{64, 64}, true});
  }
  std::string text;
  {
    std::ifstream file(path, std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  const std::size_t at = text.find("\x78\x5e");  // where deflate begins, by zlib's header
  REQUIRE(at != std::string::npos);
  for (std::size_t i = 2; i < 12; ++i) text[at + i] = '\xff';
  std::ofstream(path, std::ios::binary) << text;
  DataDemand demand = demand_of({64}, 0);
  demand.target_kind = TargetKind::none;
  const auto dataset = open_dataset(spec_of(path, "x", ""), demand);
  CHECK_THROWS_WITH_AS(read(*dataset, std::vector<std::int64_t>{3}),
                       ("cannot read samples 3 to 3 of data set 'x' of '" + path +
                        "': a chunk cannot be unpacked; the file is damaged there")
                           .c_str(),
                       Error);
}

TEST_CASE("a truncated file says so when opened, and when it is cut while in use") {
  const TempDir dir;
  const DataSpec spec = spec_of(dir / "a.h5", "train/image", "train/labels");
  write_file(dir / "a.h5");
  const auto whole = fs::file_size(dir / "a.h5");
  fs::resize_file(dir / "a.h5", whole / 2);
  CHECK(error_of(spec, demand_of({3, 8, 8}, 10)) ==
        fmt::format(
            "HDF5 file '{}' is truncated; copy or make it again: bytes: expected {}, found {}",
            dir / "a.h5", whole, whole / 2));

  write_file(dir / "a.h5");
  const auto dataset = open_dataset(spec, demand_of({3, 8, 8}, 10));
  fs::resize_file(dir / "a.h5", 4096);
  CHECK_THROWS_WITH_AS(read(*dataset, std::vector<std::int64_t>{99}),
                       doctest::Contains("was truncated while in use"), Error);
}

TEST_CASE("B32 read-only media, a lock of another process, and an unchanged file") {
  const TempDir dir;
  write_file(dir / "a.h5");
  fs::permissions(dir / "a.h5", fs::perms::owner_read);
  fs::permissions(dir.path(), fs::perms::owner_read | fs::perms::owner_exec);
  const auto before = fs::last_write_time(dir / "a.h5");

  const int locked = ::open((dir / "a.h5").c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(locked >= 0);
  REQUIRE(::flock(locked, LOCK_EX) == 0);
  const DataSpec spec = spec_of(dir / "a.h5", "train/image", "train/labels");
  std::vector<std::unique_ptr<Dataset>> readers;
  for (int i = 0; i < 8; ++i) readers.push_back(open_dataset(spec, demand_of({3, 8, 8}, 10)));
  for (const auto& reader : readers) {
    CHECK(read(*reader, std::vector<std::int64_t>{99}).inputs == std::vector<float>(192, 0.5F));
  }
  readers.clear();
  ::close(locked);
  CHECK(fs::last_write_time(dir / "a.h5") == before);
}

TEST_CASE("a data set behind an external link is read from the file that has it") {
  const TempDir dir;
  {
    TestFile other(dir / "other.h5");
    other.add<float>("padding", {1000}, H5T_IEEE_F32LE, std::vector<float>(1000, -1));
    other.add<float>("x", {2, 2}, H5T_IEEE_F32LE, std::vector<float>{1, 2, 3, 4});
    TestFile(dir / "a.h5").add_external_link("x", "other.h5", "/x");
  }
  DataDemand demand = demand_of({2}, 0);
  demand.target_kind = TargetKind::none;
  const auto dataset = open_dataset(spec_of(dir / "a.h5", "x", ""), demand);
  CHECK(read(*dataset, std::vector<std::int64_t>{1, 0}).inputs == std::vector<float>{3, 4, 1, 2});
}

TEST_CASE("sample numbers outside of the data set are a bug of ours") {
  const TempDir dir;
  write_file(dir / "a.h5");
  const auto dataset =
      open_dataset(spec_of(dir / "a.h5", "train/image", "train/labels"), demand_of({3, 8, 8}, 10));
  CHECK_THROWS_AS(read(*dataset, std::vector<std::int64_t>{100}), Error);
  CHECK_THROWS_AS(read(*dataset, std::vector<std::int64_t>{-1}), Error);
}
