// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "comm/agree.h"
#include "comm/job.h"
#include "core/error.h"

namespace annulus {
namespace {

Error error_of_agree(Communicator& comm, const std::function<void()>& work) {
  try {
    agree(comm, work);
  } catch (const Error& error) {
    return error;
  }
  return {ErrorKind::stopped, "nothing was thrown"};
}

TEST_CASE("all ranks throw the error of the lowest rank that fails, whole") {
  run_as_threads(5, 2, [](Communicator& comm) {
    const Error error = error_of_agree(comm, [&] {
      if (comm.rank() == 3) fail(ErrorKind::output, "later");
      if (comm.rank() == 2) {
        throw Error(ErrorKind::data, "bad: 1:x\nline").values("a:b", "").at({"e.toml", 7, 3});
      }
    });
    CHECK(error.kind() == ErrorKind::data);
    CHECK(error.message() == "bad: 1:x\nline");
    CHECK(error.expected() == "a:b");
    CHECK(error.found().empty());
    CHECK(to_string(error.where()) == "e.toml:7:3");
    CHECK(error.rank() == 2);
    CHECK(error.host() == comm.hosts()[1]);
    CHECK(error.is_agreed());
    comm.barrier();
  });
}

TEST_CASE("an exception that is not ours counts as a bug") {
  run_as_threads(2, 1, [](Communicator& comm) {
    const Error error = error_of_agree(comm, [&] {
      if (comm.rank() == 1) throw std::runtime_error("surprise");
    });
    CHECK(error.kind() == ErrorKind::bug);
    CHECK(error.message() == "surprise");
    CHECK(error.rank() == 1);
  });
}

TEST_CASE("one rank agrees with itself") {
  run_as_threads(1, 1, [](Communicator& comm) {
    CHECK(error_of_agree(comm, [] { fail(ErrorKind::usage, "no"); }).kind() == ErrorKind::usage);
    CHECK(error_of_agree(comm, [] {}).kind() == ErrorKind::stopped);
    CHECK(agree_on_text(comm, [] { return "text"; }) == "text");
    CHECK(agree_on_largest(comm, -3) == -3);
    CHECK(gather_texts(comm, "a") == std::vector<std::string>{"a"});
  });
}

TEST_CASE("rank 0 alone makes the text that all get") {
  std::atomic<int> calls{0};
  run_as_threads(4, 2, [&](Communicator& comm) {
    const std::string text = agree_on_text(comm, [&] {
      ++calls;
      return std::string(100000, 'x') + std::string(1, '\0') + "y";
    });
    CHECK(text == std::string(100000, 'x') + std::string(1, '\0') + "y");
    CHECK(agree_on_text(comm, [] { return std::string(); }).empty());
    CHECK_THROWS_WITH_AS(
        agree_on_text(comm, []() -> std::string { throw Error(ErrorKind::usage, "bad key"); }),
        ("[rank 0 on " + comm.hosts()[0] + "] bad key").c_str(), Error);
  });
  CHECK(calls == 1);
}

TEST_CASE("the largest value, and all texts in the order of ranks") {
  run_as_threads(3, 1, [](Communicator& comm) {
    CHECK(agree_on_largest(comm, comm.rank() == 1 ? 9 : -comm.rank()) == 9);
    const std::string mine(static_cast<std::size_t>(comm.rank() * 2), 'a');
    CHECK(gather_texts(comm, mine) == std::vector<std::string>{"", "aa", "aaaa"});
  });
}

}  // namespace
}  // namespace annulus
