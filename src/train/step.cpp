// SPDX-License-Identifier: Apache-2.0
#include "train/step.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "core/error.h"

namespace annulus {
namespace {

// Seconds since the last call; consecutive laps leave no time between them uncounted.
class Stopwatch {
 public:
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return seconds;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

constexpr std::size_t max_inputs = 16;

// Pointers to a batch's inputs, without a vector in the step.
struct InputPointers {
  std::array<const float*, max_inputs> data{};
  std::size_t count = 0;

  explicit InputPointers(const LoadedBatch& batch) : count(batch.inputs.size()) {
    require(count <= max_inputs, ErrorKind::usage, "a model has at most {} inputs, not {}",
            max_inputs, count);
    for (std::size_t i = 0; i < count; ++i)
      data[i] = static_cast<const float*>(batch.inputs[i].data);
  }
  std::span<const float* const> span() const { return {data.data(), count}; }
};

}  // namespace

Step::Step(const StepParts& parts, const StepRecord& record)
    : parts_(parts),
      record_(record),
      gradient_ready_([this](int parameter) { parts_.reducer.tensor_ready(parameter); }) {}

StepReport Step::run(std::int64_t iteration, std::int64_t update, bool stop) {
  StepReport report;
  Stopwatch whole;
  parts_.progress.iteration = iteration;

  const TraceRange range(parts_.progress.trace, Trace::trainer, "step", "train", iteration);
  parts_.reducer.begin_step();
  for (std::int64_t shard = parts_.own.begin; shard < parts_.own.end; ++shard) {
    run_shard(iteration, shard, stop, report.times);
  }
  apply(iteration, update, report);

  report.times.step_s = whole.lap();
  return report;
}

void Step::run_shard(std::int64_t iteration, std::int64_t shard, bool stop, StepTimes& times) {
  Stopwatch watch;
  const auto parameters = static_cast<std::size_t>(parts_.replica.graph().flat_elements());
  const std::span<float> flat = parts_.reducer.begin_shard();
  const std::span<float> tail = flat.subspan(parameters);
  record_.clear(tail);
  if (stop) record_.vote_to_stop(tail);
  if (parts_.plan.slice(iteration, shard).count == 0) {
    // A short batch leaves this shard nothing: it adds zeros, so that every rank takes part.
    std::fill_n(flat.begin(), parameters, 0.0F);
    parts_.reducer.end_shard();
    times.update_s += watch.lap();
    return;
  }

  times.update_s += watch.lap();
  Trace* const trace = parts_.progress.trace;
  const LoadedBatch* batch = next_batch(trace);
  times.data_s += watch.lap();
  require(batch != nullptr, ErrorKind::bug, "the loader ended before iteration {}", iteration);
  require_equal(iteration, batch->slice.iteration, "the loader's batch is of another iteration");

  const InputPointers inputs(*batch);
  const FlatBuffers buffers = parts_.replica.buffers(flat.data(), record_.batch_sums(tail).data());
  const StepContext context{iteration, batch->samples, parts_.replica.version(), trace};
  Executor& executor = parts_.replica.executor(Mode::train, batch->slice.count);
  executor.forward(inputs.span(), buffers, context);
  // Gradients are those of the mean over the batch as planned; samples that turn out not to count
  // are made good when the sum is unscaled.
  const double nominal = static_cast<double>(parts_.plan.batch_size(iteration));
  {
    const TraceRange range(trace, Trace::trainer, "loss", "forward");
    record_.put(tail, shard, executor.loss(batch->targets.data, 1 / nominal));
  }
  times.forward_s += watch.lap();

  executor.backward(inputs.span(), buffers, context, gradient_ready_);
  parts_.reducer.end_shard();
  times.backward_s += watch.lap();
}

const LoadedBatch* Step::next_batch(Trace* trace) {
  const TraceRange range(trace, Trace::trainer, "loader", "wait");
  return parts_.loader.next();
}

std::span<float> Step::finished_sum() {
  const TraceRange range(parts_.progress.trace, Trace::trainer, "gradients", "wait");
  return parts_.reducer.finish();
}

void Step::apply(std::int64_t iteration, std::int64_t update, StepReport& report) {
  Stopwatch watch;
  const Graph& graph = parts_.replica.graph();
  const auto parameters = static_cast<std::size_t>(graph.flat_elements());
  const std::span<float> sum = finished_sum();
  report.times.wait_s += watch.lap();

  const TraceRange range(parts_.progress.trace, Trace::trainer, "optimizer", "update");
  const std::span<float> tail = sum.subspan(parameters);
  report.sums = record_.total(tail);
  report.stop_wanted = record_.stop_wanted(tail);
  report.lr = parts_.schedule.lr(update);
  report.bad_shard = record_.first_bad_shard(tail);
  report.update.applied = report.bad_shard < 0;
  if (!report.update.applied) return;

  const double nominal = static_cast<double>(parts_.plan.batch_size(iteration));
  const double scale = report.sums.counted > 0 ? nominal / report.sums.counted : 1;
  report.update = parts_.optimizer.update(parts_.replica.weights(), sum.first(parameters), scale,
                                          report.lr, update);
  if (!report.update.applied) return;
  const std::span<float> batch_sums = record_.batch_sums(tail);
  for (const Graph::Statistic& statistic : graph.statistics()) {
    const auto begin = static_cast<std::size_t>(statistic.offset);
    const auto count = static_cast<std::size_t>(statistic.elements);
    parts_.ops.follow(parts_.replica.statistics().subspan(begin, count),
                      batch_sums.subspan(begin, count), nominal, statistic.spec.momentum);
  }
  parts_.replica.weights_changed();
  report.times.update_s += watch.lap();
}

}  // namespace annulus
