// SPDX-License-Identifier: Apache-2.0
// Chunked data sets, read past the library where their chunks are whole rows, give the values that
// were written; so does everything that is left to the library.
#include <filesystem>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.h"
#include "io/hdf5_source.h"
#include "support/hdf5_writer.h"
#include "support/temp_dir.h"

using annulus::Error;
using annulus::ErrorKind;
using annulus::Hdf5Source;
using annulus::test::FileLayout;
using annulus::test::TempDir;
using annulus::test::TestFile;

namespace {

constexpr std::int64_t rows = 7;
constexpr std::int64_t row_elements = 6;
using Bytes = std::vector<std::uint8_t>;

Bytes numbers() {
  Bytes values(rows * row_elements);
  std::iota(values.begin(), values.end(), std::uint8_t{1});
  return values;
}

Bytes read(const Hdf5Source& source, std::int64_t first, std::int64_t count) {
  Bytes bytes(static_cast<std::size_t>(count) * source.row_bytes());
  source.read(first, count, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

// Every stretch of rows.
void check_all(const Hdf5Source& source, const Bytes& expected) {
  for (std::int64_t first = 0; first < rows; ++first) {
    for (std::int64_t count = 1; first + count <= rows; ++count) {
      CAPTURE(first);
      CAPTURE(count);
      const auto begin = expected.begin() + first * row_elements;
      CHECK(read(source, first, count) == Bytes(begin, begin + count * row_elements));
    }
  }
}

}  // namespace

TEST_CASE("chunks of one row, of several, and of more rows than there are") {
  const TempDir directory;
  struct Case {
    FileLayout layout;
    const char* way;
  };
  const std::vector<Case> cases = {
      {{}, "offsets"},
      {{.chunk = {1, 2, 3}}, "chunk offsets"},
      {{.chunk = {3, 2, 3}}, "chunk offsets"},
      {{.chunk = {7, 2, 3}}, "chunk offsets"},
      {{.chunk = {2, 1, 3}}, "library"},
      {{.chunk = {1, 2, 3}, .deflate = true}, "library"},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CAPTURE(i);
    const std::string path = directory / (std::to_string(i) + ".h5");
    TestFile(path).add("x", {rows, 2, 3}, H5T_STD_U8LE, numbers(), cases[i].layout);
    const Hdf5Source source(path, "x");
    CHECK(source.way() == std::string(cases[i].way));
    check_all(source, numbers());
  }
}

TEST_CASE("chunks that were never written read as the fill value between others") {
  const TempDir directory;
  {
    TestFile file(directory / "a.h5");
    file.add_empty("x", {rows, 2, 3}, H5T_STD_U8LE, {.chunk = {1, 2, 3}});
    file.write_row("x", 4, Bytes{9, 8, 7, 6, 5, 4});
  }
  Bytes expected(rows * row_elements, 0);
  const Bytes row = {9, 8, 7, 6, 5, 4};
  std::copy(row.begin(), row.end(), expected.begin() + 4 * row_elements);
  const Hdf5Source source(directory / "a.h5", "x");
  CHECK(source.way() == std::string("chunk offsets"));
  check_all(source, expected);
}

TEST_CASE("so many chunks that finding them would take longer than reading go by the library") {
  const TempDir directory;
  const Bytes values(9000, 7);
  TestFile(directory / "a.h5").add("x", {9000, 1}, H5T_STD_U8LE, values, {.chunk = {1, 1}});
  const Hdf5Source source(directory / "a.h5", "x");
  CHECK(source.way() == std::string("library"));
  CHECK(read(source, 0, 9000) == values);
}

TEST_CASE("several threads read chunks whose places nobody has asked for yet") {
  const TempDir directory;
  TestFile(directory / "a.h5")
      .add("x", {rows, 2, 3}, H5T_STD_U8LE, numbers(), {.chunk = {2, 2, 3}});
  const Hdf5Source source(directory / "a.h5", "x");
  std::vector<Bytes> found(4);
  std::vector<std::thread> threads;
  for (Bytes& bytes : found) {
    threads.emplace_back([&] { bytes = read(source, 0, rows); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Bytes& bytes : found) CHECK(bytes == numbers());
}

TEST_CASE("a chunked file that is cut while in use is an error with the file") {
  const TempDir directory;
  const std::string path = directory / "a.h5";
  TestFile(path).add("x", {rows, 2, 3}, H5T_STD_U8LE, numbers(), {.chunk = {1, 2, 3}});
  const Hdf5Source source(path, "x");
  check_all(source, numbers());
  std::filesystem::resize_file(path, 100);
  try {
    read(source, 0, rows);
    FAIL("read from nothing");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    CHECK(error.text().find("a.h5' was truncated while in use") != std::string::npos);
  }
}
