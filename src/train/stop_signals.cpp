// SPDX-License-Identifier: Apache-2.0
#include "train/stop_signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include "core/error.h"

namespace annulus {
namespace {

struct StopSignal {
  int number;
  const char* name;
};

constexpr StopSignal stop_signals[] = {{SIGTERM, "SIGTERM"},
                                       {SIGINT, "SIGINT"},
                                       {SIGHUP, "SIGHUP"},
                                       {SIGUSR1, "SIGUSR1"},
                                       {SIGUSR2, "SIGUSR2"}};

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t stop_set() {
  sigset_t set;
  sigemptyset(&set);
  for (const StopSignal& signal : stop_signals) {
    // A blocked signal would be kept for the descriptor even where it is ignored.
    if (signal.number != SIGHUP || !is_ignored(SIGHUP)) sigaddset(&set, signal.number);
  }
  return set;
}

const char* signal_name(unsigned number) {
  for (const StopSignal& signal : stop_signals) {
    if (static_cast<unsigned>(signal.number) == number) return signal.name;
  }
  return "a signal";
}

}  // namespace

StopSignals::StopSignals() {
  const sigset_t set = stop_set();
  descriptor_ = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  if (descriptor_ < 0) fail(ErrorKind::resource, "{}", with_errno("signals cannot be waited for"));
  pthread_sigmask(SIG_BLOCK, &set, &mask_before_);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &pipe_before_);
}

StopSignals::~StopSignals() {
  requested();  // what came late is taken, so that it does not end the process after its work is
                // done
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  sigaction(SIGPIPE, &pipe_before_, nullptr);
  close(descriptor_);
}

bool StopSignals::requested() {
  signalfd_siginfo info;
  while (read(descriptor_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    if (*name_ == '\0') name_ = signal_name(info.ssi_signo);
  }
  return *name_ != '\0';
}

}  // namespace annulus
