// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "comm/mpi/segment.h"
#include "core/error.h"

namespace annulus {
namespace {

constexpr std::size_t bytes = 10000;

std::ptrdiff_t open_files() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

// What neighbours do, each by a thread of its own.
void connect_all(std::vector<std::unique_ptr<SharedSegment>>& segments) {
  std::vector<Segment::Handle> handles;
  handles.reserve(segments.size());
  for (const auto& segment : segments) handles.push_back(segment->handle());
  std::vector<std::jthread> threads;
  threads.reserve(segments.size());
  for (std::size_t i = 0; i < segments.size(); ++i) {
    threads.emplace_back(
        [&, i] { segments[i]->connect(handles, static_cast<int>(i), Deadline::after(20)); });
  }
}

TEST_CASE("neighbours see each other's memory, and nothing stays behind") {
  const std::ptrdiff_t before = open_files();
  {
    std::vector<std::unique_ptr<SharedSegment>> segments(5);
    for (auto& segment : segments) segment = std::make_unique<SharedSegment>(bytes);
    for (int i = 0; i < 5; ++i) {
      CHECK(segments[static_cast<std::size_t>(i)]->of(i).size() == bytes);
      CHECK(segments[static_cast<std::size_t>(i)]->of(i)[bytes - 1] == std::byte{0});
      segments[static_cast<std::size_t>(i)]->of(i)[bytes - 1] = static_cast<std::byte>(i + 1);
    }
    connect_all(segments);
    for (const auto& segment : segments) {
      for (int i = 0; i < 5; ++i) CHECK(segment->of(i)[bytes - 1] == static_cast<std::byte>(i + 1));
    }
    segments[3]->of(1)[0] = std::byte{42};
    CHECK(segments[1]->of(1)[0] == std::byte{42});
    CHECK(segments[4]->of(1)[0] == std::byte{42});
  }
  CHECK(open_files() == before);
}

TEST_CASE("more memory than there is: an error with both sizes at once") {
  try {
    const SharedSegment segment(std::size_t{1} << 50);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::resource);
    CHECK(error.expected() == "1125899906842624 bytes");
    CHECK(error.found().find(" bytes available") != std::string::npos);
  }
}

TEST_CASE("a neighbour that does not come is waited for until the deadline") {
  SharedSegment mine(bytes);
  const SharedSegment other(bytes);
  const std::vector<Segment::Handle> handles{mine.handle(), other.handle()};
  CHECK_THROWS_WITH_AS(mine.connect(handles, 0, Deadline::after(0.1)),
                       doctest::Contains("within 0.1 s"), Error);
}

TEST_CASE("neighbours with segments of different sizes do not go on") {
  SharedSegment mine(bytes);
  SharedSegment other(2 * bytes);
  const std::vector<Segment::Handle> handles{mine.handle(), other.handle()};
  const auto connect = [&](SharedSegment& segment, int rank) {
    CHECK_THROWS_AS(segment.connect(handles, rank, Deadline::after(0.5)), Error);
  };
  std::jthread thread([&] { connect(other, 1); });
  connect(mine, 0);
}

}  // namespace
}  // namespace annulus
