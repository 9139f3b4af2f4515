// SPDX-License-Identifier: Apache-2.0
#include <new>

#include <doctest/doctest.h>

#include "core/fault.h"
#include "core/progress.h"

namespace annulus {
namespace {

// The exit code of what happens; 0 where nothing does.
template <class F>
int code_of(F&& f) {
  try {
    f();
    return 0;
  } catch (const Error& error) {
    return error.exit_code();
  }
}

TEST_CASE("a planned fault happens at its rank and iteration alone") {
  const Faults faults("throw@rank=1,iteration=3");
  const auto at = [&](int rank, int iteration) {
    return code_of([&] { faults.at_iteration(rank, iteration); });
  };
  CHECK(at(1, 3) == 1);
  CHECK(at(0, 3) == 0);
  CHECK(at(1, 2) == 0);
  CHECK(code_of([&] { faults.at_phase(1, Phase::train); }) == 0);
}

TEST_CASE("a planned fault happens where its rank enters its phase, with its exit code") {
  Progress progress;
  progress.faults = Faults("throw:5@rank=2,phase=scan;throw:3@phase=save");
  const auto enter = [&](int rank, Phase phase) {
    progress.rank = rank;
    return code_of([&] { progress.enter(phase); });
  };
  CHECK(enter(2, Phase::start) == 0);
  CHECK(progress.phase == Phase::start);
  CHECK(enter(2, Phase::scan) == 5);
  CHECK(progress.phase == Phase::scan);
  CHECK(enter(1, Phase::scan) == 0);
  CHECK(enter(0, Phase::save) == 3);
  CHECK(code_of([&] { progress.faults.at_iteration(2, 0); }) == 0);
}

TEST_CASE("every phase has a name that is found again") {
  for (int number = 0; number <= static_cast<int>(Phase::finish); ++number) {
    const auto phase = static_cast<Phase>(number);
    CHECK(phase_named(name(phase)) == phase);
  }
  CHECK_FALSE(phase_named("lunch"));
  CHECK_FALSE(phase_named(""));
}

TEST_CASE("a text that plans no fault is refused with the variable, the text and the grammar") {
  for (const char* wrong :
       {"bogus", "throw:0", "throw:8", "throw:x", "kill:3", "slow", "signal", "signal:0",
        "signal:99", "throw@rank=-1", "throw@rank=one", "throw@phase=lunch",
        "throw@phase=scan,iteration=2", "throw@rank=1,when=2"}) {
    INFO(wrong);
    try {
      const Faults faults{std::string_view(wrong)};
      FAIL("accepted");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::usage);
      const std::string text = error.text();
      CHECK(text.find("ANNULUS_FAULT") != std::string::npos);
      CHECK(text.find("'" + std::string(wrong) + "'") != std::string::npos);
      CHECK(text.find("KIND@rank=R,phase=P") != std::string::npos);
    }
  }
  CHECK(Faults("").empty());
  CHECK(Faults(";").empty());
}

TEST_CASE("a fault for a rank that the job does not have is refused") {
  const Faults faults("slow:1@rank=1,iteration=0;kill@rank=4");
  faults.require_ranks(5);
  CHECK_THROWS_WITH_AS(
      faults.require_ranks(4),
      doctest::Contains("'kill@rank=4' is for a rank that is not there: expected a "
                        "rank below 4, found 4"),
      Error);
  Faults("throw@iteration=1").require_ranks(1);
}

TEST_CASE("any exception becomes an Error of its kind") {
  CHECK(to_error(Error(ErrorKind::data, "labels")).kind() == ErrorKind::data);
  CHECK(to_error(std::bad_alloc()).kind() == ErrorKind::resource);
  const Error other = to_error(std::logic_error("impossible"));
  CHECK(other.kind() == ErrorKind::bug);
  CHECK(other.text() == "impossible");
}

TEST_CASE("an error that all ranks share says so, and keeps its first origin") {
  Error error(ErrorKind::data, "labels");
  error.on(2, "h0");
  CHECK_FALSE(error.is_agreed());
  error.agreed(0, "other");
  CHECK(error.is_agreed());
  CHECK(error.rank() == 2);
  CHECK(error.host() == "h0");
}

}  // namespace
}  // namespace annulus
