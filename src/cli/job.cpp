// SPDX-License-Identifier: Apache-2.0
#include "cli/job.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <thread>

#include "cli/version.h"
#include "comm/agree.h"
#include "comm/job.h"

namespace annulus {
namespace {

// A lost peer is mostly another rank's doing, which gets this long to speak and to end the job.
constexpr std::chrono::seconds courtesy(1);

void report_failure_to_join(const Error& error) {
  if (error.kind() == ErrorKind::peer) std::this_thread::sleep_for(courtesy);
  print_error(error);
}

// The exit code of an error that all ranks share, or that ends the only one; any other error ends
// the job here.
int end_job(Communicator& comm, Error error) {
  if (comm.size() == 1 || error.is_agreed()) {
    if (comm.rank() == 0) print_error(error);
    return error.exit_code();
  }
  error.on(comm.rank(), host_of(comm, comm.rank()));
  const bool follows = error.kind() == ErrorKind::peer;
  if (follows) std::this_thread::sleep_for(courtesy);
  if (comm.first_to_fail() || !follows) print_error(error);
  comm.abort(error.exit_code());
  std::abort();  // never reached, but GCC 12 forgets that the virtual function does not return
}

// Ranks of different builds would compute different numbers; those of different commands would wait
// for each other.
void require_same_program(Communicator& comm, const char* command) {
  std::string mine = fmt::format("{}, command {}", program_line(), command);
  const std::string first = agree_on_text(comm, [&] { return mine; });
  agree(comm, [&] {
    if (mine == first) return;
    throw Error(ErrorKind::usage, "this rank was started with another program than rank 0")
        .values(first, mine);
  });
}

// Plans the faults of ANNULUS_FAULT; a mistake in it is kept until the ranks can say it once.
std::optional<Error> plan_faults(Progress& progress) {
  try {
    progress.faults = Faults::from_environment();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

// Some usage errors are lines that each begin with a place in a config, for editors to jump to.
bool begins_with_place(const Error& error) {
  return error.kind() == ErrorKind::usage &&
         (!error.where().file.empty() || error.message().find('\n') != std::string::npos);
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
  std::string text;
  if (!begins_with_place(error)) {
    const bool usage = error.kind() == ErrorKind::usage;
    text = usage ? "annulus: " : fmt::format("annulus: {}: ", name(error.kind()));
    if (error.rank() >= 0) text += fmt::format("[rank {} on {}] ", error.rank(), error.host());
  }
  text += error.text() + '\n';
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

int run_job(const char* command, const std::function<int(Communicator&, Progress&)>& body) {
  Progress progress;
  progress.rank = std::max(launcher_rank(), 0);
  const std::optional<Error> mistake = plan_faults(progress);
  const std::unique_ptr<Communicator> comm = join_job(progress, report_failure_to_join);
  try {
    agree(*comm, [&] {
      if (mistake) throw Error(*mistake);
      progress.faults.require_ranks(comm->size());
    });
    require_same_program(*comm, command);
    progress.enter(Phase::start);
    return body(*comm, progress);
  } catch (const std::exception& exception) {
    return end_job(*comm, to_error(exception));
  }
}

}  // namespace annulus
