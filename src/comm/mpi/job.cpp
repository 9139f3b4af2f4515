// SPDX-License-Identifier: Apache-2.0
#include "comm/job.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "comm/group_communicator.h"
#include "comm/mpi/launcher.h"
#include "comm/mpi/mpi_transport.h"
#include "core/shards.h"

namespace annulus {
namespace {

constexpr double start_seconds = 300;

// Where a rank is, as all others learn it.
struct Place {
  int leader = 0;  // the lowest rank of its machine, in the launcher's numbers
  int part = 0;    // its pretended node there
  std::array<char, 256> host{};

  auto order() const { return std::tuple(leader, part); }
};

const char* read_environment(const char* name) {
  return std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets variables
}

// Two launchers that do not know each other leave each process alone in a job of its own.
void require_launched_size(const Launch& launch, int size) {
  if (launch.ranks == 0 || launch.ranks == size) return;
  throw Error(ErrorKind::resource,
              fmt::format("the launcher ({}) and MPI disagree about the number of ranks; each "
                          "process would train alone. annulus was built with another MPI than "
                          "that of this mpirun or srun: use the one it was built with",
                          launch.variable))
      .values(fmt::format("{} ranks", launch.ranks), fmt::format("{}", size))
      .agreed(0, host_name());
}

Place find_place(int rank, int pretended) {
  Place place;
  MPI_Comm machine = MPI_COMM_NULL;
  check_mpi(
      MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &machine),
      "MPI_Comm_split_type");
  int local = 0;
  int count = 0;
  check_mpi(MPI_Comm_rank(machine, &local), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(machine, &count), "MPI_Comm_size");
  place.leader = rank;
  check_mpi(MPI_Bcast(&place.leader, 1, MPI_INT, 0, machine), "MPI_Bcast");
  check_mpi(MPI_Comm_free(&machine), "MPI_Comm_free");
  while (local >= share_of(count, place.part, std::min(pretended, count)).end) ++place.part;
  const std::string host = host_name();
  std::copy_n(host.begin(), std::min(host.size(), place.host.size() - 1), place.host.begin());
  return place;
}

struct Membership {
  Roster roster;
  std::unique_ptr<Transport> transport;
};

// Numbers the ranks by (node, local rank); nodes come in the order of the launcher's ranks.
Membership arrange(std::shared_ptr<MpiSession> session, const Place& mine, int rank, int size) {
  std::vector<Place> places(static_cast<std::size_t>(size));
  check_mpi(MPI_Allgather(&mine, sizeof(Place), MPI_BYTE, places.data(), sizeof(Place), MPI_BYTE,
                          MPI_COMM_WORLD),
            "MPI_Allgather");
  std::vector<std::size_t> order(places.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return places[a].order() < places[b].order();
  });
  const auto found = std::find(order.begin(), order.end(), static_cast<std::size_t>(rank));
  const int position = static_cast<int>(found - order.begin());
  std::vector<int> nodes;
  std::vector<std::string> hosts;
  for (const std::size_t each : order) {
    const Place& place = places[each];
    nodes.push_back(place.leader * size + place.part);
    hosts.emplace_back(place.host.data());
  }
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(MPI_COMM_WORLD, 0, position, &comm), "MPI_Comm_split");
  return {make_roster(position, nodes, hosts),
          std::make_unique<MpiTransport>(std::move(session), comm)};
}

// All of it on the communication thread. From where one rank alone may fail, `session` is there.
Membership start(const Launch& launch, Worker& worker, Progress& progress,
                 std::shared_ptr<MpiSession>& session) {
  auto opened = std::make_shared<MpiSession>();
  int rank = 0;
  int size = 0;
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  require_launched_size(launch, size);
  progress.rank = rank;
  session = std::move(opened);
  worker.set_idle([weak = std::weak_ptr(session)] {
    if (const auto alive = weak.lock()) alive->progress();
  });
  progress.enter(Phase::join);
  int pretended = rank == 0 ? pretended_nodes(read_environment) : 0;
  check_mpi(MPI_Bcast(&pretended, 1, MPI_INT, 0, MPI_COMM_WORLD), "MPI_Bcast");
  const Place place = find_place(rank, pretended);
  Membership membership = arrange(session, place, rank, size);
  progress.rank = membership.roster.rank;
  return membership;
}

}  // namespace

std::unique_ptr<Communicator> join_job(Progress& progress, const Report& report) {
  const Launch launch = detect_launch(read_environment);
  if (!launch.present) {
    const std::string host = host_name();
    const int node = 0;
    return std::make_unique<GroupCommunicator>(std::make_shared<Group>(
        make_roster(0, {&node, 1}, {&host, 1}), nullptr, nullptr, progress));
  }
  // What a rank that fails holds until the end: it would wait for the others to let it go.
  auto worker = std::make_shared<Worker>();
  std::shared_ptr<MpiSession> session;
  Membership membership;
  std::shared_ptr<Group> group;
  try {
    worker->run(start_seconds, [&] { membership = start(launch, *worker, progress, session); });
    group = std::make_shared<Group>(std::move(membership.roster), worker,
                                    std::move(membership.transport), progress);
    return std::make_unique<GroupCommunicator>(group);
  } catch (const std::exception& exception) {
    const bool stuck = worker->stuck();
    if (!stuck && !session) throw;
    Error error = to_error(exception);
    error.on(progress.rank, host_name());
    report(error);
    if (!stuck) session->abort(error.exit_code());
    std::_Exit(error.exit_code());  // its thread is in MPI, and may never come back
  }
}

}  // namespace annulus
