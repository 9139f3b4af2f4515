// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.h"
#include "io/checkpoint.h"
#include "io/data_file.h"
#include "support/checkpoint_state.h"
#include "support/io_data.h"
#include "support/library_leaks.h"
#include "support/temp_dir.h"

using namespace annulus;
using namespace annulus::test;

namespace {

std::string cut(const std::string& text, std::mt19937& random) {
  return text.substr(0, random() % text.size());
}

// A copy of `whole` with one to three bytes changed, or cut short.
std::string damaged(const std::string& whole, std::mt19937& random) {
  if (random() % 4 == 0) return cut(whole, random);
  std::string text = whole;
  for (std::size_t i = 0; i <= random() % 3; ++i) {
    text[random() % text.size()] ^= static_cast<char>(1 + random() % 255);
  }
  return text;
}

void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace

TEST_CASE("a damaged checkpoint is refused or gives the saved values, never others") {
  const TempDir dir;
  SmallState saved(1);
  const std::string path = save_checkpoint(dir.path(), meta_of(1), saved.state());
  std::mt19937 random(12);  // NOLINT: the same damages each time
  int refused = 0;
  for (const char* name : {"/tensors.h5", "/manifest.json"}) {
    const std::string whole = contents_of(path + name);
    for (int i = 0; i < 300; ++i) {
      const std::string text = damaged(whole, random);
      write(path + name, text);
      SmallState loaded(2);
      try {
        load_checkpoint(path, loaded.state(), false);
        REQUIRE(loaded == saved);
      } catch (const Error& error) {
        REQUIRE(error.kind() == ErrorKind::output);
        REQUIRE(loaded == SmallState(2));
        ++refused;
      }
    }
    write(path + name, whole);
  }
  CHECK(refused > 550);
}

TEST_CASE("a damaged data file is refused or read, never a crash") {
  const TempDir dir;
  // HDF5 1.10 itself does not survive every change in the tables of compressed data (its decoded
  // chunks may be smaller than it takes them to be), so those files are only cut.
  for (const std::string storage : {"contiguous", "chunked", "compressed"}) {
    CAPTURE(storage);
    const auto damage = storage == "compressed" ? cut : damaged;
    const std::string path = dir / fmt::format("{}.h5", storage);
    write_synthetic_file(
        parse_synthetic_file(fmt::format("samples=40,shape=1x2x2,chunk=8,storage={}", storage)),
        path);
    const std::string whole = contents_of(path);
    const LibraryMayLeak scope;
    std::mt19937 random(6);  // NOLINT: the same damages each time
    int refused = 0;
    for (int i = 0; i < 300; ++i) {
      write(path, damage(whole, random));
      try {
        const auto dataset =
            open_dataset(spec_of(path, "train/images", "train/labels"), demand_of({1, 2, 2}, 10));
        std::vector<std::int64_t> ids(static_cast<std::size_t>(dataset->size()));
        std::iota(ids.begin(), ids.end(), std::int64_t{0});
        const ReadBatch batch = read(*dataset, ids);
        for (std::int32_t label : batch.class_ids) REQUIRE((label >= 0 && label < 10));
      } catch (const Error& error) {
        REQUIRE(error.kind() == ErrorKind::data);
        REQUIRE(std::string(error.what()).find('\n') == std::string::npos);
        ++refused;
      }
    }
    CHECK(refused > 60);
    CHECK(LibraryMayLeak::open_handles() == 0);
  }
}
