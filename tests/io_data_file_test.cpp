// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.h"
#include "io/data_file.h"
#include "support/hdf5_writer.h"
#include "support/io_data.h"
#include "support/temp_dir.h"

using namespace annulus;
using namespace annulus::test;
namespace fs = std::filesystem;

namespace {

std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// What is wrong, a line each.
std::string verify_error(const std::string& path) {
  std::string text;
  try {
    for (const DatasetReport& report : verify_file(path)) {
      if (report.fault.empty()) continue;
      text += (text.empty() ? "" : "\n") + report.fault;
      CHECK_FALSE(report.numeric);
    }
  } catch (const Error& error) {
    return error.kind() == ErrorKind::data ? error.what() : "of another kind";
  }
  return text;
}

}  // namespace

TEST_CASE("a file is described by its data sets in the order of their names") {
  const TempDir dir;
  {
    TestFile file(dir / "a.h5");
    file.add<float>("train/images", {4, 1, 2, 2}, H5T_IEEE_F32BE, std::vector<float>(16),
                    {{2, 1, 2, 2}, true});
    file.add<std::int64_t>("train/labels", {4}, H5T_STD_I64LE, std::vector<std::int64_t>(4));
    file.add_strings("names", {"a", "b"});
    file.add<float>("version", {}, H5T_IEEE_F64LE, std::vector<float>{1});
    file.add_external_link("broken", "none.h5", "/x");
  }
  const std::vector<DatasetInfo> infos = describe_file(dir / "a.h5");
  REQUIRE(infos.size() == 4);
  CHECK(infos[0].path == "names");
  CHECK(infos[0].type == "variable-length string");
  CHECK(infos[1].path == "train/images");
  CHECK(infos[1].extents == std::vector<std::int64_t>{4, 1, 2, 2});
  CHECK(infos[1].type == "f32 big-endian");
  CHECK(infos[1].layout == "chunked 2x1x2x2 deflate");
  CHECK(infos[1].stored_bytes > 0);
  CHECK(infos[1].stored_bytes < 64);  // zeros are compressed
  CHECK(infos[2].path == "train/labels");
  CHECK(infos[2].layout == "contiguous");
  CHECK(infos[2].stored_bytes == 32);
  CHECK(infos[3].path == "version");
  CHECK(extents_text(infos[3].extents) == "scalar");
  CHECK_THROWS_AS(describe_file(dir / "none.h5"), Error);
}

TEST_CASE("a good file is verified with the least and the largest values") {
  const TempDir dir;
  {
    TestFile file(dir / "a.h5");
    file.add<float>("train/images", {3, 2}, H5T_IEEE_F64LE, std::vector<float>{1, -2, 3, 4, 5, 0});
    file.add<std::int64_t>("train/labels", {3}, H5T_STD_I8LE, std::vector<std::int64_t>{2, 0, 9});
    file.add<float>("mean", {1}, H5T_IEEE_F32LE, std::vector<float>{1});
    file.add_strings("names", {"a"});
  }
  const std::vector<DatasetReport> reports = verify_file(dir / "a.h5");
  REQUIRE(reports.size() == 4);
  CHECK_FALSE(reports[1].numeric);
  CHECK(reports[2].info.path == "train/images");
  CHECK(reports[2].numeric);
  CHECK(reports[2].minimum == -2);
  CHECK(reports[2].maximum == 5);
  CHECK(reports[3].minimum == 0);
  CHECK(reports[3].maximum == 9);
}

TEST_CASE("what verification finds is one line with file, data set, sample and value") {
  const TempDir dir;
  const std::string of = "' of '" + dir / "a.h5" + "': sample ";
  std::vector<float> x(600, 1);
  x[2 * 237 + 1] = std::numeric_limits<float>::quiet_NaN();
  TestFile(dir / "a.h5").add<float>("x", {300, 2}, H5T_IEEE_F32LE, x, {{10, 2}, true});
  CHECK(verify_error(dir / "a.h5") ==
        "data set 'x" + of + "237: expected a finite number, found nan");
  x[2 * 137] = std::numeric_limits<float>::infinity();
  TestFile(dir / "a.h5").add<float>("x", {300, 2}, H5T_IEEE_F32LE, x);
  CHECK(verify_error(dir / "a.h5") ==
        "data set 'x" + of + "137: expected a finite number, found inf");

  TestFile(dir / "a.h5")
      .add<std::int64_t>("t/labels", {3}, H5T_STD_I8LE, std::vector<std::int64_t>{1, -1, 2});
  CHECK(verify_error(dir / "a.h5") ==
        "data set 't/labels" + of + "1: expected a class id, found -1");

  {
    TestFile file(dir / "a.h5");
    file.add<float>("t/x", {100, 1}, H5T_IEEE_F32LE, std::vector<float>(100));
    file.add<std::int64_t>("t/labels", {99}, H5T_STD_I8LE, std::vector<std::int64_t>(99));
  }
  CHECK(verify_error(dir / "a.h5") ==
        "100 samples but 99 labels: 't/x' and 't/labels' of '" + dir / "a.h5" + "'");
  TestFile(dir / "a.h5").add_group("nothing");
  CHECK(verify_error(dir / "a.h5").find("has no data set") != std::string::npos);
}

TEST_CASE("verification finds names that stand for no usable data set, a line each") {
  const TempDir dir;
  const std::string of = "' of '" + dir / "a.h5" + "': expected ";
  const std::string numbers = "numbers with the samples as first axis, found ";
  const auto fault_with = [&](const auto& fill) {
    TestFile file(dir / "a.h5");
    file.add<std::int64_t>("u/labels", {2}, H5T_STD_I8LE, std::vector<std::int64_t>{0, 1});
    fill(file);
  };
  const auto expect = [&](const std::string& path, const std::string& rest, const auto& fill) {
    fault_with(fill);
    CHECK(verify_error(dir / "a.h5") == "data set '" + path + of + rest);
  };
  expect("soft",
         "a data set or a group, found a link that cannot be followed: '/none' is not there",
         [](TestFile& file) { file.add_soft_link("soft", "/none"); });
  expect("t/images",
         "a data set or a group, found a link that cannot be followed: '/x' of 'b.h5' cannot be "
         "opened",
         [](TestFile& file) { file.add_external_link("t/images", "b.h5", "/x"); });
  expect("t/images", "a data set, found an empty group",
         [](TestFile& file) { file.add_group("t/images"); });
  expect("t/labels", numbers + "a group", [](TestFile& file) {
    file.add_strings("t/labels/names", {"a", "b"});
  });
  expect("t/images", numbers + "(2) compound",
         [](TestFile& file) { file.add_compound("t/images", 2); });
  expect("t/images", numbers + "(1) variable-length string",
         [](TestFile& file) { file.add_strings("t/images", {"a"}); });
  expect("t/target", numbers + "scalar f32", [](TestFile& file) {
    file.add<float>("t/target", {}, H5T_IEEE_F32LE, std::vector<float>{1});
  });
  expect("inputs", numbers + "(0, 3) u8", [](TestFile& file) {
    file.add_empty("inputs", {0, 3}, H5T_STD_U8LE);
  });

  fault_with([](TestFile& file) {
    file.add_empty("x", {4, 1}, H5T_STD_U8LE, {{4, 1}, false, 32000});
    file.add_soft_link("y", "/none");
  });
  const std::string two = verify_error(dir / "a.h5");
  CHECK(two.find("data set 'x' of '" + dir / "a.h5" + "' is stored with filter 32000, which") == 0);
  CHECK(two.find("\ndata set 'y' of '") != std::string::npos);

  fault_with([](TestFile& file) {  // what files of several inputs and targets have
    file.add_empty("inputs/left", {2, 3}, H5T_STD_U8LE);
    file.add_empty("labels/fine", {2}, H5T_STD_U8LE);
    file.add_soft_link("labels/same", "/labels/fine");
  });
  CHECK(verify_error(dir / "a.h5").empty());
}

TEST_CASE("a file that cannot have room is refused before anything is written") {
  const TempDir dir;
  const auto write = [&](const char* spec) {
    write_synthetic_file(parse_synthetic_file(spec), dir / "a.h5");
  };
  for (const char* storage : {"contiguous", "compressed"}) {
    const std::string spec = fmt::format("samples=1000000000000,shape=3x32x32,storage={}", storage);
    CHECK_THROWS_WITH_AS(
        write(spec.c_str()),
        doctest::Contains(
            ("'" + dir / "a.h5" + "' is not written: it needs 3080000000000000 bytes, ").c_str()),
        Error);
  }
  CHECK_THROWS_WITH_AS(write("samples=9000000000,shape=70000x70000"),
                       "9000000000 samples of shape 70000x70000 are more than any file can have: "
                       "at most 2^63 - 1 bytes",
                       Error);
  CHECK_THROWS_WITH_AS(write("samples=1,shape=4000000000x4000000000x4"),
                       doctest::Contains("more than any file"), Error);
  CHECK_THROWS_WITH_AS(write("samples=9223372036854775807,test=1,shape=1"),
                       doctest::Contains("more than any file"), Error);
  CHECK_THROWS_WITH_AS(write("samples=2,shape=3000000x2000,chunk=1,storage=chunked"),
                       doctest::Contains("a chunk of 1 rows of 6000000000 bytes is too large"),
                       Error);
  CHECK(dir.names().empty());
}

TEST_CASE("a wish to stop is asked for between writes and leaves nothing") {
  const TempDir dir;
  int calls = 0;
  const auto stop_at = [&](int last) {
    calls = 0;
    return [&calls, last] { require(++calls < last, ErrorKind::stopped, "stopped"); };
  };
  const SyntheticFile spec = parse_synthetic_file("samples=10,shape=2000x1000,test=10");
  for (int last : {1, 4}) {
    CHECK_THROWS_WITH_AS(write_synthetic_file(spec, dir / "a.h5", stop_at(last)), "stopped", Error);
    CHECK(calls == last);
    CHECK(dir.names().empty());
  }
  write_synthetic_file(spec, dir / "a.h5", stop_at(1000));
  CHECK(dir.names() == std::vector<std::string>{"a.h5"});
}

TEST_CASE("a name as long as the file system takes is written") {
  const TempDir dir;
  const std::string name = std::string(252, 'n') + ".h5";
  write_synthetic_file(parse_synthetic_file("samples=2,shape=3"), dir / name);
  CHECK(describe_file(dir / name).size() == 2);
  const std::string longer = std::string(300, 'n') + ".h5";
  CHECK_THROWS_WITH_AS(
      write_synthetic_file(parse_synthetic_file("samples=2,shape=3"), dir / longer),
      ("cannot look at '" + dir / longer + "': File name too long (errno 36)").c_str(), Error);
}

TEST_CASE("a synthetic file is as its text says, in every storage, and the same each time") {
  const TempDir dir;
  const std::string spec = "samples=50,shape=3x4x5,classes=7,test=9,seed=3,chunk=8";
  for (const char* type : {"u8", "f32", "f64"}) {
    std::vector<float> first;
    for (const char* storage : {"contiguous", "chunked", "compressed"}) {
      CAPTURE(type);
      CAPTURE(storage);
      const std::string text = fmt::format("{},type={},storage={}", spec, type, storage);
      const std::string path = dir / fmt::format("{}-{}.h5", type, storage);
      write_synthetic_file(parse_synthetic_file(text), path);
      const auto dataset =
          open_dataset(spec_of(path, "train/images", "train/labels"), demand_of({3, 4, 5}, 7));
      CHECK(dataset->size() == 50);
      const ReadBatch batch = read(*dataset, std::vector<std::int64_t>{49, 8, 0});
      CHECK(batch.class_ids == std::vector<std::int32_t>{0, 1, 0});
      if (first.empty()) first = batch.inputs;
      CHECK(batch.inputs == first);
      CHECK(open_dataset(spec_of(path, "test/images", "test/labels"), demand_of({3, 4, 5}, 7))
                ->size() == 9);
      CHECK(verify_file(path).size() == 4);

      write_synthetic_file(parse_synthetic_file(text), dir / "again.h5");
      CHECK(contents_of(path) == contents_of(dir / "again.h5"));
      fs::remove(dir / "again.h5");
    }
  }
  CHECK(describe_file(dir / "u8-compressed.h5")[2].layout == "chunked 8x3x4x5 shuffle deflate");
  CHECK_THROWS_WITH_AS(write_synthetic_file(parse_synthetic_file(spec), dir / "u8-chunked.h5"),
                       doctest::Contains("exists; remove it or choose another name"), Error);
}

TEST_CASE("the text of a synthetic file is checked") {
  CHECK_THROWS_WITH_AS(parse_synthetic_file("samples=3"),
                       doctest::Contains("needs samples and shape"), Error);
  CHECK_THROWS_WITH_AS(parse_synthetic_file("samples=0,shape=2"),
                       "'samples' must be an integer >= 1, not '0'", Error);
  CHECK_THROWS_WITH_AS(parse_synthetic_file("sampels=3"),
                       "unknown key 'sampels' of a synthetic data set; did you mean 'samples'?",
                       Error);
  CHECK_THROWS_WITH_AS(parse_synthetic_file("samples=3,shape=2xx3"),
                       "'shape' must be an integer >= 1, not ''", Error);
  CHECK_THROWS_WITH_AS(parse_synthetic_file("samples=3,shape=2,type=f16"),
                       "'type' must be one of u8, f32, f64, not 'f16'", Error);
  CHECK_THROWS_WITH_AS(parse_synthetic_file("samples=3,shape=2,samples=3"),
                       "'samples' is given twice for one synthetic data set", Error);
  CHECK_THROWS_WITH_AS(parse_synthetic_file("samples"), doctest::Contains("is not KEY=VALUE"),
                       Error);
}
