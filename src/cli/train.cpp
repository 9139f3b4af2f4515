// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <iterator>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/job.h"
#include "cli/run_config.h"
#include "cli/start.h"
#include "cli/summary.h"
#include "cli/version.h"
#include "comm/agree.h"
#include "train/trainer.h"

namespace annulus {
namespace {

// Where a run writes, and the checkpoint that it goes on from; decided by rank 0.
struct Destination {
  std::string directory;
  std::string checkpoint;  // empty: a fresh start
};

std::string latest_in(const std::string& directory, Log& log) {
  std::vector<std::string> ignored;
  const auto latest = latest_checkpoint(directory + "/checkpoints", &ignored);
  for (const std::string& name : ignored)
    log.info("{} is no complete checkpoint and is passed over", name);
  return latest.value_or("");
}

// A resumed run goes on in its own directory; everything else gets a new one.
Destination choose(const TrainOptions& options, const RunSpec& spec, Log& log) {
  const bool exists = !options.run_dir.empty() && std::filesystem::exists(options.run_dir);
  const bool required = options.resume || spec.train.resume == "required";
  if (required) {
    require(!options.run_dir.empty(), ErrorKind::usage,
            "to resume, name the run's directory with --run-dir");
  }
  Destination destination;
  if (required || (spec.train.resume == "auto" && exists)) {
    destination.directory = RunDirectory::open(options.run_dir);
    destination.checkpoint = latest_in(destination.directory, log);
    require(!required || !destination.checkpoint.empty(), ErrorKind::output,
            "{}: no complete checkpoint to resume from", options.run_dir);
    if (destination.checkpoint.empty()) {
      log.info("{}: no checkpoint yet, the run starts afresh", options.run_dir);
    }
  } else {
    // The checkpoint is looked at first: a wrong path must not leave an empty run directory.
    if (!options.resume_from.empty()) read_checkpoint_info(options.resume_from);
    destination.directory = RunDirectory::create(options.run_dir, spec.name);
    destination.checkpoint = options.resume_from;
  }
  return destination;
}

Destination agree_on_destination(const TrainOptions& options, const RunSpec& spec,
                                 Communicator& comm, Log& log) {
  const std::string text = agree_on_text(comm, [&] {
    const Destination chosen = choose(options, spec, log);
    return chosen.directory + '\n' + chosen.checkpoint;
  });
  const std::size_t end = text.find('\n');
  return {text.substr(0, end), text.substr(end + 1)};
}

std::optional<Settled> agree_on_settled(const std::string& checkpoint, Communicator& comm) {
  if (checkpoint.empty()) return std::nullopt;
  const std::string text = agree_on_text(comm, [&] {
    const Settled settled = settled_of(checkpoint);
    return fmt::format("{} {} {}", settled.shards, settled.threads, settled.isa);
  });
  Settled settled;
  std::size_t used = 0;
  settled.shards = std::stoll(text, &used);
  std::size_t more = 0;
  settled.threads = std::stoll(text.substr(used), &more);
  settled.isa = text.substr(used + more + 1);
  return settled;
}

void write_start_files(const RunDirectory& directory, const RunConfig& config, const Start& start) {
  Value resolved = config.value;
  resolved.set("threads", {start.settled.threads, {}});
  resolved.find("batch")->set("shards", {start.settled.shards, {}});
  RunConfig copy;
  copy.value = resolved;
  write_file_atomically(directory.config(), copy.text());
  std::string placements;
  for (const std::string& placement : start.placements) {
    placements += (placements.empty() ? "[\n  " : ",\n  ") + placement;
  }
  write_file_atomically(directory.placement(), placements + "\n]\n");
}

void print_end(const TrainResult& result, const RunDirectory& directory, Log& log) {
  std::string text =
      fmt::format("{} after {} updates: train loss {:.4f}", result.stopped ? "stopped" : "done",
                  result.updates, result.train_loss);
  if (result.test) {
    text += fmt::format(", test loss {:.4f}", result.test->loss);
    for (const auto& [name, value] : result.test->values)
      text += fmt::format(", test {} {:.4f}", name, value);
  }
  log.info("{}", text);
  log.info("run directory: {}", directory.path());
}

// "1 rank", "2 ranks"
std::string counted(std::int64_t count, const char* thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

// One experiment from its config to its summary.
class Experiment {
 public:
  Experiment(const TrainOptions& options, RunConfig& config, Communicator& comm, Progress& progress,
             StopSignals& signals, Log& log)
      : options_(options),
        config_(config),
        comm_(comm),
        progress_(progress),
        signals_(signals),
        log_(log) {}

  int run() {
    const Destination destination = agree_on_destination(options_, config_.spec, comm_, log_);
    const RunDirectory directory(destination.directory);
    log_.open_file(directory.logs());
    try {
      return run_in(directory, destination.checkpoint);
    } catch (const Error& error) {
      // The rank that reports an error also leaves it in the summary.
      if (comm_.rank() == 0 || error.rank() < 0)
        write_file_atomically(directory.summary(), summary_of(error));
      throw;
    }
  }

 private:
  int run_in(const RunDirectory& directory, const std::string& checkpoint) {
    Start start = start_job(config_, agree_on_settled(checkpoint, comm_), comm_, log_);
    agree(comm_, [&] {
      if (comm_.rank() == 0) write_start_files(directory, config_, start);
    });
    Session session(config_.spec, *config_.graph,
                    open_data(config_.spec, *config_.graph, true, comm_, progress_), comm_,
                    *start.device, progress_);
    announce(session, start);

    CheckpointMeta meta;
    meta.config = config_.text();
    meta.data = session.train_data().fingerprint();
    meta.versions = versions_line();
    Trainer trainer(session, directory, meta, start.settled, signals_, progress_.faults, log_);
    if (!checkpoint.empty()) trainer.resume(checkpoint);
    const TrainResult result = trainer.run();

    const std::string summary = summary_of(result, start, comm_);
    agree(comm_, [&] {
      if (comm_.rank() == 0) write_file_atomically(directory.summary(), summary);
    });
    print_end(result, directory, log_);
    return result.stopped ? static_cast<int>(ErrorKind::stopped) : 0;
  }

  void announce(Session& session, const Start& start) {
    log_.info("{}: {} on {} ({}), {}, {}, {} parameters, {} updates", config_.spec.name,
              counted(comm_.size(), "rank"), counted(std::ssize(comm_.ranks_by_node()), "node"),
              fmt::join(comm_.hosts(), ", "), start.device->description(),
              counted(start.settled.shards, "shard"), session.graph().parameter_elements(),
              session.total_updates());
    const OptimizerSpec& optimizer = config_.spec.optimizer;
    if (optimizer.lr_scale != "none") {
      log_.info("optimizer.lr {} scaled by the batch to {}", optimizer.lr,
                base_lr(optimizer, config_.spec.batch.global));
    }
    if (!session.exact()) {
      log_.info(
          "{} shards on {} ranks add up in another order than on one rank: results are equal to "
          "rounding, not bit for bit",
          start.settled.shards, comm_.size());
    }
  }

  const TrainOptions& options_;
  RunConfig& config_;
  Communicator& comm_;
  Progress& progress_;
  StopSignals& signals_;
  Log& log_;
};

}  // namespace

int run_train(const TrainOptions& options) {
  StopSignals signals;  // before any other thread
  return run_job("train", [&](Communicator& comm, Progress& progress) {
    Log log(comm.rank());
    std::vector<RunConfig> configs = load_configs(comm, options, log);
    for (RunConfig& config : configs) {
      TrainOptions own = options;
      // The points of a sweep are runs of their own, side by side in the given directory.
      if (configs.size() > 1 && !options.run_dir.empty()) own.run_dir += '/' + config.spec.name;
      Log run_log(comm.rank());
      const int code = Experiment(own, config, comm, progress, signals, run_log).run();
      if (code != 0) return code;
    }
    return 0;
  });
}

}  // namespace annulus
