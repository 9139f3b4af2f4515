// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include <doctest/doctest.h>

#include "core/error.h"
#include "core/value.h"

namespace annulus {

TEST_CASE("an error says where, what and both values in one line") {
  Error error(ErrorKind::data, "rows of 'train/labels'");
  CHECK(std::string(error.what()) == "rows of 'train/labels'");
  error.values("1437", "1400");
  CHECK(std::string(error.what()) == "rows of 'train/labels': expected 1437, found 1400");
  error.at({"exp.toml", 7, 3});
  CHECK(std::string(error.what()) ==
        "exp.toml:7:3: rows of 'train/labels': expected 1437, found 1400");
  error.on(2, "h0");
  CHECK(std::string(error.what()) ==
        "[rank 2 on h0] exp.toml:7:3: rows of 'train/labels': expected 1437, found 1400");
  error.on(0, "other");  // the origin stays
  CHECK(error.rank() == 2);
  CHECK(error.host() == "h0");
  CHECK(error.expected() == "1437");
  CHECK(error.found() == "1400");
  CHECK(error.where().line == 7);
  CHECK(error.message() == "rows of 'train/labels'");
  const Error copy = error;
  CHECK(std::string(copy.what()) == error.what());
}

TEST_CASE("the kind of an error is the exit code") {
  const std::pair<ErrorKind, int> codes[] = {{ErrorKind::bug, 1},      {ErrorKind::usage, 2},
                                             {ErrorKind::data, 3},     {ErrorKind::output, 4},
                                             {ErrorKind::resource, 5}, {ErrorKind::numeric, 6},
                                             {ErrorKind::peer, 7},     {ErrorKind::stopped, 75}};
  for (const auto& [kind, code] : codes) {
    CHECK(Error(kind, "x").exit_code() == code);
    CHECK_FALSE(std::string(name(kind)).empty());
  }
}

TEST_CASE("a place is as long as it is known") {
  CHECK(to_string(Location{}).empty());
  CHECK(to_string(Location{"a.toml", 0, 0}) == "a.toml");
  CHECK(to_string(Location{"a.toml", 3, 0}) == "a.toml:3");
  CHECK(to_string(Location{"a.toml", 3, 4}) == "a.toml:3:4");
  CHECK(base_directory({"dir/a.toml", 3, 4}) == "dir");
  CHECK(base_directory({"a.toml", 3, 4}).empty());
  CHECK(base_directory({"--set a=x/y", 0, 0}).empty());
}

TEST_CASE("requirements throw with what they require") {
  require(true, ErrorKind::bug, "never {}", 1);
  require_equal(1, 1, "never");
  CHECK_THROWS_WITH_AS(require(false, ErrorKind::usage, "n = {}", 3), "n = 3", Error);
  CHECK_THROWS_WITH_AS(fail(ErrorKind::peer, "rank {} is lost", 3), "rank 3 is lost", Error);
  try {
    require_equal(2, 3, "ranks");
    FAIL("2 is not 3");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::bug);
    CHECK(std::string(error.what()) == "ranks: expected 2, found 3");
  }
}

TEST_CASE("errno comes with its words and its number") {
  errno = ENOENT;
  CHECK(with_errno("x") == "x: No such file or directory (errno 2)");
}

}  // namespace annulus
