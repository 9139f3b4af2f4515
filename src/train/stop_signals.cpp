// SPDX-License-Identifier: Apache-2.0
#include "train/stop_signals.h"

#include <csignal>

#include <sys/signalfd.h>
#include <unistd.h>

#include "core/error.h"

namespace annulus {
namespace {

constexpr int stop_signals[] = {SIGTERM, SIGINT, SIGUSR1, SIGUSR2};

sigset_t stop_set() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : stop_signals) sigaddset(&set, signal);
  return set;
}

const char* signal_name(unsigned signal) {
  switch (signal) {
    case SIGTERM:
      return "SIGTERM";
    case SIGINT:
      return "SIGINT";
    case SIGUSR1:
      return "SIGUSR1";
    default:
      return "SIGUSR2";
  }
}

}  // namespace

StopSignals::StopSignals() {
  const sigset_t set = stop_set();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  descriptor_ = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  if (descriptor_ < 0) fail(ErrorKind::resource, "{}", with_errno("signals cannot be waited for"));
}

StopSignals::~StopSignals() {
  requested();  // what came late is taken, so that it does not end the process after its work is
                // done
  const sigset_t set = stop_set();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
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
