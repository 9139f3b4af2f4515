// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cerrno>
#include <string>

#include <doctest/doctest.h>
#include <unistd.h>

#include "train/stop_signals.h"

namespace annulus {
namespace {

// Sets what a signal does, and restores it.
class Disposition {
 public:
  Disposition(int signal, void (*handler)(int)) : signal_(signal) {
    struct sigaction action {};
    action.sa_handler = handler;
    sigaction(signal, &action, &before_);
  }
  ~Disposition() { sigaction(signal_, &before_, nullptr); }
  Disposition(const Disposition&) = delete;
  Disposition& operator=(const Disposition&) = delete;

 private:
  int signal_;
  struct sigaction before_ {};
};

bool is_blocked(int signal) {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return sigismember(&mask, signal) == 1;
}

TEST_CASE("each stop signal is a wish to stop, and the first one gives its name") {
  const Disposition hangup(SIGHUP, SIG_DFL);
  const std::pair<int, const char*> signals[] = {{SIGTERM, "SIGTERM"},
                                                 {SIGINT, "SIGINT"},
                                                 {SIGHUP, "SIGHUP"},
                                                 {SIGUSR1, "SIGUSR1"},
                                                 {SIGUSR2, "SIGUSR2"}};
  for (const auto& [number, name] : signals) {
    const std::string expected = name;
    CAPTURE(expected);
    StopSignals stop;
    CHECK_FALSE(stop.requested());
    kill(getpid(), number);
    CHECK(stop.requested());
    kill(getpid(), number == SIGTERM ? SIGINT : SIGTERM);
    CHECK(stop.requested());
    CHECK(stop.name() == expected);
  }
  for (const auto& [number, name] : signals) CHECK_FALSE(is_blocked(number));
}

TEST_CASE("a SIGHUP that was ignored at the start stays ignored, as nohup wants it") {
  const Disposition ignored(SIGHUP, SIG_IGN);
  StopSignals stop;
  CHECK_FALSE(is_blocked(SIGHUP));
  kill(getpid(), SIGHUP);
  CHECK_FALSE(stop.requested());
}

TEST_CASE("while a run may be stopped, writing to a closed pipe is an error and not the end") {
  const Disposition fatal(SIGPIPE, SIG_DFL);
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  close(ends[0]);
  {
    const StopSignals stop;
    CHECK(write(ends[1], "x", 1) == -1);
    CHECK(errno == EPIPE);
  }
  close(ends[1]);
  struct sigaction after {};
  sigaction(SIGPIPE, nullptr, &after);
  CHECK((after.sa_handler == SIG_DFL));
}

}  // namespace
}  // namespace annulus
