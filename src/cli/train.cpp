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
  std::string directory;   // as given; one that the run goes on in
  std::string checkpoint;  // empty: a fresh start
  bool exists = false;
};

std::string latest_in(const std::string& directory, Log& log) {
  std::vector<std::string> ignored;
  const auto latest = latest_checkpoint(directory + "/checkpoints", &ignored);
  for (const std::string& name : ignored)
    log.info("{} is no complete checkpoint and is passed over", name);
  return latest.value_or("");
}

// A resumed run goes on in its own directory, which is locked before its checkpoints are looked at;
// everything else gets a new one, which is made when all that can be wrong has been looked at.
Destination choose(const TrainOptions& options, const RunSpec& spec, std::optional<RunLock>& lock,
                   Log& log) {
  std::error_code error;
  const bool exists = !options.run_dir.empty() && std::filesystem::exists(options.run_dir, error);
  const bool required = options.resume || spec.train.resume == "required";
  if (required) {
    require(!options.run_dir.empty(), ErrorKind::usage,
            "to resume, name the run's directory with --run-dir");
  }
  if (!required && !(spec.train.resume == "auto" && exists)) {
    RunDirectory::refuse_used(options.run_dir);
    if (!options.resume_from.empty()) read_checkpoint_info(options.resume_from);
    return {options.run_dir, options.resume_from, false};
  }
  RunDirectory::Claimed claimed = RunDirectory::open(options.run_dir);
  lock.emplace(std::move(claimed.lock));
  Destination destination{claimed.path, latest_in(claimed.path, log), true};
  require(!required || !destination.checkpoint.empty(), ErrorKind::output,
          "{}: no complete checkpoint to resume from", options.run_dir);
  if (destination.checkpoint.empty())
    log.info("{}: no checkpoint yet, the run starts afresh", options.run_dir);
  return destination;
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

  // Whatever can be refused is refused before the run directory is made, so that a mistake neither
  // uses up a directory nor overwrites the summary of the run that was to go on.
  int run() {
    const Destination destination = agree_on_destination();
    stop_if_asked();
    Start start = start_job(config_, agree_on_settled(destination.checkpoint, comm_), comm_, log_);
    DataSets data = open_data(config_.spec, *config_.graph, true, comm_, progress_);
    stop_if_asked();
    const RunPlan plan = agree_on_plan(config_, data, comm_, log_);
    Session session(config_.spec, *config_.graph, std::move(data), plan, comm_, *start.device,
                    progress_);
    stop_if_asked();
    const RunDirectory directory = make_directory(destination);
    try {
      return run_in(directory, destination.checkpoint, start, session);
    } catch (const std::exception& exception) {
      const Error error = to_error(exception);
      log_.error_in_file(fmt::format("{}: {}", name(error.kind()), error.what()));
      leave_summary(directory, error);
      throw;
    }
  }

 private:
  // Nothing is saved yet: a wish to stop ends the job where it is.
  void stop_if_asked() {
    agree(comm_, [&] {
      if (!signals_.requested()) return;
      fail(ErrorKind::stopped, "{} came before the first update: there is nothing to save",
           signals_.name());
    });
  }

  // The rank that reports an error also leaves it in the summary; one that only lost another leaves
  // that one's there. The error itself counts more than a summary that cannot be written.
  void leave_summary(const RunDirectory& directory, Error error) const {
    std::error_code ignored;
    if (comm_.size() > 1) error.on(comm_.rank(), host_of(comm_, comm_.rank()));
    if (error.is_agreed() && comm_.rank() != 0) return;
    if (error.kind() == ErrorKind::peer && std::filesystem::exists(directory.summary(), ignored))
      return;
    try {
      write_file_atomically(directory.summary(), summary_of(error));
    } catch (const Error&) {
      return;
    }
  }

  Destination agree_on_destination() {
    const std::string text = agree_on_text(comm_, [&] {
      const Destination chosen = choose(options_, config_.spec, lock_, log_);
      return fmt::format("{}\n{}\n{}", chosen.exists ? 1 : 0, chosen.checkpoint, chosen.directory);
    });
    const std::size_t end = text.find('\n', 2);
    return {text.substr(end + 1), text.substr(2, end - 2), text[0] == '1'};
  }

  RunDirectory make_directory(const Destination& destination) {
    if (destination.exists) return RunDirectory(destination.directory);
    return RunDirectory(agree_on_text(comm_, [&] {
      RunDirectory::Claimed claimed =
          RunDirectory::create(destination.directory, config_.spec.name);
      lock_.emplace(std::move(claimed.lock));
      return claimed.path;
    }));
  }

  int run_in(const RunDirectory& directory, const std::string& checkpoint, const Start& start,
             Session& session) {
    agree(comm_, [&] {
      log_.open_file(directory.logs());
      if (comm_.rank() != 0) return;
      std::error_code ignored;
      std::filesystem::remove(directory.summary(), ignored);  // it tells how a run has ended
      write_start_files(directory, config_, start);
    });
    if (lock_ && !lock_->held()) {
      log_.warning("{}: this file system has no locks; see that no other job uses the directory",
                   directory.path());
    }
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
  std::optional<RunLock> lock_;  // rank 0
};

// The points of a sweep are runs of their own, side by side in the given directory. One that had
// not begun when the sweep was broken off starts when it goes on.
TrainOptions options_of_point(const TrainOptions& options, const RunConfig& config) {
  TrainOptions own = options;
  if (options.run_dir.empty()) return own;
  own.run_dir += '/' + config.spec.name;
  std::error_code error;
  if (!std::filesystem::exists(own.run_dir, error)) own.resume = false;
  return own;
}

// A sweep runs for long: what its last point lacks is to be known before its first one starts.
void check_points(const TrainOptions& options, std::vector<RunConfig>& configs,
                  Communicator& comm) {
  agree(comm, [&] {
    if (comm.rank() != 0) return;
    for (RunConfig& config : configs) {
      RunSpec& spec = config.spec;
      const TrainOptions own = options_of_point(options, config);
      if (!own.resume && spec.train.resume == "off") RunDirectory::refuse_used(own.run_dir);
      const DataSets data = open_data(spec, *config.graph, true);
      const std::int64_t shards = spec.batch.shards;
      if (shards == 0) spec.batch.shards = comm.size();
      plan_run(spec, *config.graph, config.value, data.train->size());
      spec.batch.shards = shards;  // start_job() tells what was asked for from what was settled
    }
  });
}

}  // namespace

int run_train(const TrainOptions& options) {
  StopSignals signals;  // before any other thread
  return run_job("train", [&](Communicator& comm, Progress& progress) {
    Log log(comm.rank());
    std::vector<RunConfig> configs = load_configs(comm, options, log);
    const bool sweep = configs.size() > 1;
    if (sweep) check_points(options, configs, comm);
    for (RunConfig& config : configs) {
      const TrainOptions own = sweep ? options_of_point(options, config) : options;
      Log run_log(comm.rank());
      const int code = Experiment(own, config, comm, progress, signals, run_log).run();
      if (code != 0) return code;
    }
    return 0;
  });
}

}  // namespace annulus
