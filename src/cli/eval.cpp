// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "cli/commands.h"
#include "cli/job.h"
#include "cli/run_config.h"
#include "cli/start.h"
#include "cli/summary.h"
#include "comm/agree.h"
#include "train/evaluator.h"
#include "train/session.h"

namespace annulus {
namespace {

void print(const Metrics& metrics, bool json) {
  if (json) {
    std::puts(to_json(metrics).text().c_str());
    return;
  }
  std::string text = fmt::format("{} samples, loss {:.6f}", metrics.samples, metrics.loss);
  for (const auto& [name, value] : metrics.values) text += fmt::format(", {} {:.4f}", name, value);
  std::puts(text.c_str());
}

}  // namespace

int run_eval(const EvalOptions& options) {
  return run_job("eval", [&](Communicator& comm, Progress& progress) {
    Log log(comm.rank());
    RunConfig config = load_one_config(comm, options, log);
    require_test_data(config, comm);
    Start start = start_job(config, std::nullopt, comm, log);

    DataSets data = open_data(config.spec, *config.graph, false, comm, progress);
    const auto seed = static_cast<std::uint64_t>(config.spec.seed);
    Replica replica(*config.graph, *start.device, seed, MemoryMode::planned,
                    backend_options(config.spec));
    Evaluator evaluator(comm, replica, *data.test, loading_options(config.spec.data.test, seed),
                        evaluation_chunk(config.spec.batch));
    replica.bind();
    NamedState state;
    replica.add_to(state);
    progress.enter(Phase::load);
    agree(comm, [&] {
      if (comm.rank() == 0) load_checkpoint(options.weights, state, true);
    });
    broadcast_state(comm, state);
    replica.weights_changed();

    progress.enter(Phase::evaluate);
    const Metrics metrics = evaluator.run();
    if (comm.rank() == 0) print(metrics, options.json);
    return 0;
  });
}

}  // namespace annulus
