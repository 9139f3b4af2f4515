// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include <mpi.h>

namespace annulus {

// MPI between initialisation and end. Lives on the communication thread, which alone calls MPI; but
// abort may come from any thread.
class MpiSession {
 public:
  MpiSession();
  // Finalises, unless ranks are lost: that could hang.
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  void lose() { lost_ = true; }
  bool lost() const { return lost_; }
  // Lets MPI work on what others wait for, and does what abort() asks for.
  void progress();
  // Only what abort() asks for.
  void obey();
  [[noreturn]] void abort(int code);

 private:
  bool lost_ = false;
  std::atomic<int> abort_code_{0};
};

// Error (peer) with MPI's own words unless `code` is success.
void check_mpi(int code, const char* call);

}  // namespace annulus
