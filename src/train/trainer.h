// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/fault.h"
#include "core/log.h"
#include "io/checkpoint.h"
#include "io/metrics_file.h"
#include "train/progress_line.h"
#include "train/run_directory.h"
#include "train/session.h"
#include "train/step_profile.h"
#include "train/stop_signals.h"

namespace annulus {

// What belongs to the arithmetic of a run: settled at its first start, kept in its checkpoints, and
// the same on every rank.
struct Settled {
  std::int64_t shards = 0;
  std::int64_t threads = 0;  // compute threads a shard
  std::string isa;           // instruction set of the CPU backend's library
};

// The settled choices that a checkpoint keeps. Error (output).
Settled settled_of(const std::string& checkpoint);

// What a run has done when it ends.
struct TrainResult {
  bool stopped = false;      // by a signal or the time limit, with its state saved
  std::int64_t updates = 0;  // of the whole run, resumed parts included
  double epochs = 0;
  double samples_per_s = 0;  // of this process's steps, evaluation and saving left out
  double wall_s = 0;         // of this process's loop, all included
  double train_loss = 0;     // mean over the last epoch's samples
  std::optional<Metrics> test;
  std::vector<std::int64_t> samples_by_rank;  // since this process started
  std::string weights_hash;
};

// The loop around steps: what is written, when it is evaluated and saved, and when it ends. Every
// decision in it is a function of numbers that all ranks share.
class Trainer {
 public:
  // `meta` is stored in each checkpoint, with the step filled in, and so is `settled`, as it is.
  Trainer(Session& session, const RunDirectory& directory, CheckpointMeta meta, Settled settled,
          StopSignals& signals, const Faults& faults, Log& log);

  // Continues from a checkpoint: read by rank 0, sent to all. Collective. Before run().
  void resume(const std::string& checkpoint);
  TrainResult run();

 private:
  // Counters that a checkpoint keeps.
  struct Counters {
    std::int64_t iteration = 0;  // batches drawn
    std::int64_t update = 0;     // updates applied
    double epoch_loss = 0;       // sums since the last epoch began
    double epoch_counted = 0;
  };

  void write_profile();
  void check_numbers(const StepReport& report);
  void after_step(const StepReport& report);
  void log_update(const StepReport& report, const Metrics& metrics);
  void show_progress(const StepReport& report, const Metrics& metrics);
  double epochs_done() const;
  bool due(std::int64_t every, std::int64_t every_epochs) const;
  void evaluate();
  void save();
  bool stop_requested();
  TrainResult result(bool stopped);

  Session& session_;
  RunDirectory directory_;
  CheckpointMeta meta_;
  Settled settled_;
  StopSignals& signals_;
  const Faults& faults_;
  Log& log_;
  NamedState state_;
  Counters counters_;
  std::optional<MetricsFile> metrics_;  // rank 0
  std::optional<ProgressLine> line_;
  std::chrono::steady_clock::time_point start_;
  double step_seconds_ = 0;
  double log_seconds_ = 0;  // of steps since the last logged update
  double log_data_wait_ = 0;
  std::int64_t log_samples_ = 0;
  std::int64_t samples_ = 0;      // of the job, since this process started
  std::int64_t own_samples_ = 0;  // of this rank
  std::int64_t first_update_ = 0;
  std::int64_t saved_update_ = -1;
  std::int64_t evaluated_update_ = -1;
  std::optional<Metrics> test_;
  std::optional<StepProfile> profile_;
};

// Sends all tensors and scalars of rank 0's state to the other ranks' states of the same names.
// Collective.
void broadcast_state(Communicator& comm, const NamedState& state);

}  // namespace annulus
