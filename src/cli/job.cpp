// SPDX-License-Identifier: Apache-2.0
#include "cli/job.h"

#include <cstdio>
#include <cstdlib>

#include "comm/job.h"

namespace annulus {
namespace {

const std::string& own_host(const Communicator& comm) {
  return comm.hosts()[static_cast<std::size_t>(comm.node())];
}

[[noreturn]] void end_job(Communicator& comm, Error error) {
  error.on(comm.rank(), own_host(comm));
  print_error(error);
  comm.abort(error.exit_code());
  std::abort();  // never reached, but GCC 12 forgets that the virtual function does not return
}

}  // namespace

int launcher_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment is never written
    if (const char* text = std::getenv(name)) return std::atoi(text);
  }
  return -1;
}

void print_error(const Error& error) {
  // Problems of a config are lines of their own, each with its place, for editors to jump to.
  const bool config = error.kind() == ErrorKind::usage;
  std::string text = config ? "" : fmt::format("annulus: {}: ", name(error.kind()));
  if (!config && error.rank() >= 0)
    text += fmt::format("[rank {} on {}] ", error.rank(), error.host());
  text += error.text() + '\n';
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

int run_job(const std::function<int(Communicator&, Progress&)>& body) {
  Progress progress;
  const std::unique_ptr<Communicator> comm = join_job(progress);
  try {
    return body(*comm, progress);
  } catch (const Error& error) {
    if (error.rank() < 0 && comm->size() > 1) end_job(*comm, error);
    if (comm->rank() == 0) print_error(error);
    return error.exit_code();
  } catch (const std::exception& error) {
    end_job(*comm, Error(ErrorKind::bug, error.what()));
  }
}

}  // namespace annulus
