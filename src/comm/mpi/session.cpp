// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/session.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include <unistd.h>

#include "comm/transport.h"
#include "core/error.h"

namespace annulus {

MpiSession::MpiSession() {
  int provided = 0;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
  if (provided < MPI_THREAD_FUNNELED) {
    throw Error(ErrorKind::resource, "MPI's support of threads is too low")
        .values(fmt::format("{} or more", MPI_THREAD_FUNNELED), fmt::format("{}", provided));
  }
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

MpiSession::~MpiSession() {
  if (!lost_) MPI_Finalize();
}

void MpiSession::progress() {
  obey();
  if (lost_) return;
  int found = 0;
  check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE),
            "MPI_Iprobe");
}

void MpiSession::obey() {
  const int code = abort_code_.load();
  if (code == 0) return;
  std::fflush(nullptr);
  MPI_Abort(MPI_COMM_WORLD, code);
}

// The communication thread may hang in MPI and never see the request, and MPI_Abort may hang as
// well; so this thread ends the process when it has had its time.
void MpiSession::abort(int code) {
  constexpr std::chrono::seconds patience(2);
  abort_code_ = failure_code(code);
  std::this_thread::sleep_for(patience);
  _exit(failure_code(code));
}

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> words{};
  int length = 0;
  MPI_Error_string(code, words.data(), &length);
  fail(ErrorKind::peer, "{}: {}", call,
       std::string(words.data(), static_cast<std::size_t>(length)));
}

}  // namespace annulus
