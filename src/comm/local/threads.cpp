// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <thread>
#include <vector>

#include "comm/group_communicator.h"
#include "comm/job.h"
#include "comm/local/local_transport.h"
#include "core/shards.h"

namespace annulus {
namespace {

std::vector<int> nodes_of_ranks(int ranks, int nodes) {
  std::vector<int> node_of;
  for (int node = 0; node < nodes; ++node) {
    const auto share = share_of(ranks, node, nodes);
    node_of.insert(node_of.end(), static_cast<std::size_t>(share.count()), node);
  }
  return node_of;
}

// The job of some threads, and how each of them ended.
class ThreadJob {
 public:
  ThreadJob(int ranks, int nodes)
      : node_of_(nodes_of_ranks(ranks, nodes)),
        hosts_(node_of_.size(), host_name()),
        world_(std::make_shared<World>(ranks, fate_)),
        errors_(node_of_.size()) {}

  void run(int rank, const std::function<void(Communicator&)>& body) {
    try {
      Progress progress;
      GroupCommunicator communicator(join(rank, progress));
      body(communicator);
    } catch (...) {
      errors_[static_cast<std::size_t>(rank)] = std::current_exception();
      int nobody = -1;  // the others need not wait for this one
      fate_->ended_by.compare_exchange_strong(nobody, rank);
    }
  }

  // The lowest rank's error; one that may only follow from the end of another rank comes last.
  void rethrow() const {
    for (const bool lost_peers : {false, true}) {
      for (const auto& error : errors_) {
        if (error && is_of_a_lost_peer(error) == lost_peers) std::rethrow_exception(error);
      }
    }
  }

 private:
  std::shared_ptr<Group> join(int rank, Progress& progress) {
    const int ranks = static_cast<int>(node_of_.size());
    return std::make_shared<Group>(make_roster(rank, node_of_, hosts_),
                                   ranks > 1 ? std::make_shared<Worker>() : nullptr,
                                   std::make_unique<LocalTransport>(world_, rank), progress);
  }

  static bool is_of_a_lost_peer(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const Error& ours) {
      return ours.kind() == ErrorKind::peer;
    } catch (...) {
      return false;
    }
  }

  std::vector<int> node_of_;
  std::vector<std::string> hosts_;
  std::shared_ptr<Fate> fate_ = std::make_shared<Fate>();
  std::shared_ptr<World> world_;
  std::vector<std::exception_ptr> errors_;
};

}  // namespace

void run_as_threads(int ranks, int nodes, const std::function<void(Communicator&)>& body) {
  require(ranks > 0 && nodes > 0 && nodes <= ranks, ErrorKind::bug, "{} ranks on {} nodes", ranks,
          nodes);
  ThreadJob job(ranks, nodes);
  {
    std::vector<std::jthread> threads;
    threads.reserve(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&job, &body, rank] { job.run(rank, body); });
    }
  }
  job.rethrow();
}

}  // namespace annulus
