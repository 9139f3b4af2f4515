// SPDX-License-Identifier: Apache-2.0
#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "comm/agree.h"
#include "core/error.h"

namespace annulus {
namespace {

using Clock = std::chrono::steady_clock;

// The first two steps pay for what is done once.
constexpr std::int64_t profiled_from = 2;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void broadcast_bytes(Communicator& comm, std::span<std::byte> bytes) {
  const std::span<std::uint8_t> view(reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size());
  comm.broadcast(TensorView(view), 0);
}

template <class T>
void broadcast_scalar(Communicator& comm, T& value) {
  comm.broadcast(TensorView(std::span<T>(&value, 1)), 0);
}

void broadcast_scalar(Communicator& comm, std::string& value) {
  value = agree_on_text(comm, [&] { return value; });
}

}  // namespace

void broadcast_state(Communicator& comm, const NamedState& state) {
  std::vector<std::byte> bytes;
  for (const StateTensor& tensor : state.tensors()) {
    bytes.resize(tensor.bytes());
    if (comm.rank() == 0) tensor.read(bytes);
    broadcast_bytes(comm, bytes);
    if (comm.rank() != 0) tensor.write(bytes);
  }
  for (const StateScalar& scalar : state.scalars()) {
    std::visit([&](auto* value) { broadcast_scalar(comm, *value); }, scalar.value);
  }
}

Settled settled_of(const std::string& checkpoint) {
  Settled settled;
  for (const auto& [name, text] : read_checkpoint_info(checkpoint).scalars) {
    if (name == "settled/shards") settled.shards = std::stoll(text);
    if (name == "settled/threads") settled.threads = std::stoll(text);
    if (name == "settled/isa") settled.isa = text;
  }
  require(settled.shards > 0 && settled.threads > 0 && !settled.isa.empty(), ErrorKind::output,
          "{}: the checkpoint does not say what its run was settled on (settled/shards, "
          "settled/threads, "
          "settled/isa)",
          checkpoint);
  return settled;
}

Trainer::Trainer(Session& session, const RunDirectory& directory, CheckpointMeta meta,
                 Settled settled, StopSignals& signals, const Faults& faults, Log& log)
    : session_(session),
      directory_(directory),
      meta_(std::move(meta)),
      settled_(std::move(settled)),
      signals_(signals),
      faults_(faults),
      log_(log) {
  session_.replica().add_to(state_);
  session_.optimizer().add_to(state_);
  state_.add("settled/shards", &settled_.shards);
  state_.add("settled/threads", &settled_.threads);
  state_.add("settled/isa", &settled_.isa);
  state_.add("trainer/iteration", &counters_.iteration);
  state_.add("trainer/update", &counters_.update);
  state_.add("trainer/epoch_loss", &counters_.epoch_loss);
  state_.add("trainer/epoch_counted", &counters_.epoch_counted);
}

void Trainer::resume(const std::string& checkpoint) {
  session_.progress().enter(Phase::load);
  agree(session_.comm(), [&] {
    if (session_.comm().rank() == 0) load_checkpoint(checkpoint, state_, false);
  });
  broadcast_state(session_.comm(), state_);
  session_.replica().weights_changed();
  saved_update_ = counters_.update;
  log_.info("resumed from {} at update {}", checkpoint, counters_.update);
}

TrainResult Trainer::run() {
  Communicator& comm = session_.comm();
  start_ = Clock::now();
  first_update_ = counters_.update;
  if (comm.rank() == 0) metrics_.emplace(directory_.metrics());
  line_.emplace(comm.rank(), session_.total_updates() - first_update_);
  session_.start_at(counters_.iteration);

  session_.progress().enter(Phase::train);
  if (session_.spec().train.profile > 0)
    profile_.emplace(session_, profiled_from, session_.spec().train.profile);
  bool stopped = false;
  while (counters_.update < session_.total_updates() && !stopped) {
    faults_.at_iteration(comm.rank(), counters_.iteration);
    if (profile_ && profile_->before_step(counters_.update - first_update_)) write_profile();
    const StepReport report =
        session_.step().run(counters_.iteration, counters_.update, stop_requested());
    check_numbers(report);
    after_step(report);
    const TrainSpec& train = session_.spec().train;
    stopped = report.stop_wanted && counters_.update < session_.total_updates();
    // Saved first: a test set that cannot be read or evaluated takes no work with it.
    if (due(train.save_every, train.save_every_epochs)) save();
    if (!stopped && due(train.evaluate_every, train.evaluate_every_epochs)) evaluate();
  }
  if (profile_ && profile_->stop()) write_profile();
  save();
  if (!stopped) evaluate();
  session_.progress().enter(Phase::finish);
  return result(stopped);
}

void Trainer::write_profile() {
  agree(session_.comm(), [&] { profile_->write(directory_.traces()); });
  log_.info("the profile of {} steps is in {}; ui.perfetto.dev shows it",
            session_.spec().train.profile, directory_.traces());
}

// Every rank has the same report, so every rank throws; the error is that of the rank it comes
// from.
void Trainer::check_numbers(const StepReport& report) {
  if (report.update.applied) return;
  line_->clear();
  const bool loss = report.bad_shard >= 0;
  const int rank = loss ? session_.rank_of_shard(report.bad_shard) : 0;
  const std::string saved =
      saved_update_ < 0 ? "nothing is saved yet"
                        : fmt::format("the last checkpoint is that of update {}", saved_update_);
  Error error(
      ErrorKind::numeric,
      fmt::format("the {} of iteration {} is not finite{}: lower optimizer.lr or look at the "
                  "data; {}",
                  loss ? "loss" : "gradient", counters_.iteration,
                  loss ? fmt::format(" (shard {})", report.bad_shard) : "", saved));
  throw error.agreed(rank, host_of(session_.comm(), rank));
}

bool Trainer::stop_requested() {
  const double limit = session_.spec().train.max_seconds;
  return signals_.requested() || (limit > 0 && seconds_since(start_) >= limit);
}

void Trainer::after_step(const StepReport& report) {
  const BatchPlan& plan = session_.plan();
  const std::int64_t batch = plan.batch_size(counters_.iteration);
  if (counters_.iteration % plan.steps_per_epoch() == 0) {
    counters_.epoch_loss = 0;
    counters_.epoch_counted = 0;
  }
  counters_.epoch_loss += report.sums.loss;
  counters_.epoch_counted += report.sums.counted;
  samples_ += batch;
  own_samples_ += session_.own_samples(counters_.iteration);
  step_seconds_ += report.times.step_s;
  log_seconds_ += report.times.step_s;
  log_data_wait_ += report.times.data_s;
  log_samples_ += batch;
  ++counters_.iteration;
  ++counters_.update;
  if (report.sums.counted == 0) {
    log_.warning("no sample of iteration {} counted: every label is ignored",
                 counters_.iteration - 1);
  }

  const std::int64_t every = std::max<std::int64_t>(session_.spec().train.log_every, 1);
  const bool logged = counters_.update % every == 0 || counters_.update == session_.total_updates();
  const bool shown = line_->due(logged);
  if (!logged && !shown) return;
  const Graph& graph = session_.graph();
  const Metrics metrics = to_metrics(report.sums, graph.loss(), graph.classes());
  if (shown) show_progress(report, metrics);
  if (logged) log_update(report, metrics);
}

void Trainer::log_update(const StepReport& report, const Metrics& metrics) {
  if (metrics_) {
    JsonObject line;
    line.set("update", counters_.update)
        .set("epoch", epochs_done())
        .set("loss", metrics.loss)
        .set("lr", report.lr)
        .set("samples_per_s", static_cast<double>(log_samples_) / log_seconds_)
        .set("data_wait_s", log_data_wait_)
        .set("gradient_norm", report.update.gradient_norm);
    for (const auto& [name, value] : metrics.values) line.set(name, value);
    metrics_->append(line);
  }
  log_seconds_ = 0;
  log_data_wait_ = 0;
  log_samples_ = 0;
}

void Trainer::show_progress(const StepReport& report, const Metrics& metrics) {
  std::string text = fmt::format("update {}/{}  epoch {:.2f}  loss {:.4f}", counters_.update,
                                 session_.total_updates(), epochs_done(), metrics.loss);
  for (const auto& [name, value] : metrics.values) text += fmt::format("  {} {:.4f}", name, value);
  text += fmt::format("  {:.0f} samples/s  data wait {:.0f}%  ETA {}",
                      static_cast<double>(samples_) / step_seconds_,
                      100 * report.times.data_s / report.times.step_s,
                      line_->remaining(counters_.update - first_update_));
  line_->show(text);
}

double Trainer::epochs_done() const {
  return static_cast<double>(counters_.iteration) /
         static_cast<double>(session_.plan().steps_per_epoch());
}

// Whether a thing that is done every so many updates or epochs is due after the last update.
bool Trainer::due(std::int64_t every, std::int64_t every_epochs) const {
  const std::int64_t steps = session_.plan().steps_per_epoch();
  if (every > 0 && counters_.update % every == 0) return true;
  return every_epochs > 0 && counters_.iteration % steps == 0 &&
         counters_.iteration / steps % every_epochs == 0;
}

void Trainer::evaluate() {
  if (session_.evaluator() == nullptr || evaluated_update_ == counters_.update) return;
  session_.progress().enter(Phase::evaluate);
  test_ = session_.evaluator()->run();
  evaluated_update_ = counters_.update;
  session_.progress().phase = Phase::train;
  line_->clear();
  std::string text = fmt::format("update {}: test loss {:.4f}", counters_.update, test_->loss);
  JsonObject test;
  test.set("loss", test_->loss);
  for (const auto& [name, value] : test_->values) {
    text += fmt::format("  {} {:.4f}", name, value);
    test.set(name, value);
  }
  log_.info("{}  ({} samples)", text, test_->samples);
  if (!metrics_) return;
  metrics_->append(
      JsonObject().set("update", counters_.update).set("epoch", epochs_done()).set("test", test));
}

void Trainer::save() {
  if (saved_update_ == counters_.update) return;
  session_.progress().enter(Phase::save);
  agree(session_.comm(), [&] {
    if (session_.comm().rank() != 0) return;
    meta_.step = counters_.update;
    save_checkpoint(directory_.checkpoints(), meta_, state_);
  });
  saved_update_ = counters_.update;
  session_.progress().phase = Phase::train;
}

TrainResult Trainer::result(bool stopped) {
  line_->clear();
  Communicator& comm = session_.comm();
  TrainResult result;
  result.stopped = stopped;
  result.updates = counters_.update;
  result.epochs = epochs_done();
  result.samples_per_s = step_seconds_ > 0 ? static_cast<double>(samples_) / step_seconds_ : 0;
  result.wall_s = seconds_since(start_);
  result.train_loss = counters_.epoch_loss / std::max(counters_.epoch_counted, 1.0);
  result.test = test_;
  result.samples_by_rank.resize(static_cast<std::size_t>(comm.size()));
  comm.all_gather(TensorView(std::span<std::int64_t>(&own_samples_, 1)),
                  TensorView(std::span<std::int64_t>(result.samples_by_rank)));
  result.weights_hash = session_.replica().weights_hash();
  return result;
}

}  // namespace annulus
