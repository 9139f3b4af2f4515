// SPDX-License-Identifier: Apache-2.0
#include "train/session.h"

#include <algorithm>
#include <limits>

#include "comm/agree.h"
#include "core/error.h"
#include "core/host_memory.h"
#include "train/memory_estimate.h"

namespace annulus {
namespace {

MemoryMode memory_mode(const RunSpec& spec) {
  return spec.train.debug_memory ? MemoryMode::separate : MemoryMode::planned;
}

ReducerLayout reducer_layout(const RunSpec& spec, const Graph& graph, const StepRecord& record) {
  constexpr double mebibyte = 1 << 20;
  ReducerLayout layout;
  for (const Graph::Parameter& parameter : graph.parameters())
    layout.tensors.push_back(parameter.room);
  layout.tail = record.elements();
  layout.shards = spec.batch.shards;
  layout.bucket_bytes = static_cast<std::int64_t>(spec.comm.bucket_mb * mebibyte);
  layout.last_bytes = static_cast<std::int64_t>(spec.comm.last_bucket_mb * mebibyte);
  return layout;
}

}  // namespace

DataDemand data_demand(const Graph& graph) {
  DataDemand demand;
  for (const ModelInput& input : graph.inputs()) {
    demand.input_names.push_back(input.name);
    demand.input_shapes.push_back(input.shape);
  }
  if (graph.loss().kind == "mean_squared_error") {
    demand.target_kind = TargetKind::values;
    demand.target_shape = graph.values()[static_cast<std::size_t>(graph.output())].shape;
  }
  demand.classes = graph.classes();
  demand.has_ignore_index = graph.loss().ignore_index.has_value();
  demand.ignore_index = graph.loss().ignore_index.value_or(0);
  return demand;
}

DataSets open_data(const RunSpec& spec, const Graph& graph, bool want_train) {
  const DataDemand demand = data_demand(graph);
  const auto seed = static_cast<std::uint64_t>(spec.seed);
  DataSets sets;
  if (spec.data.synthetic) {
    if (want_train) sets.train = make_synthetic_dataset(demand, spec.data.samples, seed);
    if (spec.data.has_test) sets.test = make_synthetic_dataset(demand, spec.batch.global, seed + 1);
    return sets;
  }
  require(!want_train || spec.data.has_train, ErrorKind::usage,
          "missing [data.train]; data.synthetic = true trains on random data");
  if (want_train) sets.train = open_dataset(spec.data.train, demand);
  if (spec.data.has_test) sets.test = open_dataset(spec.data.test, demand);
  return sets;
}

DataSets open_data(const RunSpec& spec, const Graph& graph, bool want_train, Communicator& comm,
                   Progress& progress) {
  DataSets sets;
  progress.enter(Phase::scan);
  agree(comm, [&] { sets = open_data(spec, graph, want_train); });
  progress.phase = Phase::start;
  return sets;
}

LoaderOptions loading_options(const DataSpec& data, std::uint64_t seed) {
  LoaderOptions options;
  options.workers = data.workers;
  options.prefetch = data.prefetch;
  options.scale = data.scale;
  options.mean = data.mean;
  options.std = data.std;
  options.augment = data.augment;
  options.seed = seed;
  return options;
}

Loader::SliceAt shard_stream(const BatchPlan& plan, Span64 own, std::int64_t first,
                             std::int64_t end) {
  // Batches of an epoch are alike but for the last one, where a shard may be left without samples.
  const std::int64_t full_steps = plan.steps_per_epoch() - 1;
  std::vector<std::int64_t> last;
  for (std::int64_t shard = own.begin; shard < own.end; ++shard) {
    if (plan.slice(full_steps, shard).count > 0) last.push_back(shard);
  }
  const std::int64_t in_full = full_steps * own.count();
  const std::int64_t in_epoch = in_full + static_cast<std::int64_t>(last.size());
  const std::int64_t start =
      first / plan.steps_per_epoch() * in_epoch + first % plan.steps_per_epoch() * own.count();
  return [=, &plan](std::int64_t index) -> std::optional<Slice> {
    if (in_epoch == 0) return std::nullopt;
    const std::int64_t unit = start + index;
    const std::int64_t in = unit % in_epoch;
    const bool full = in < in_full;
    const std::int64_t step = full ? in / own.count() : full_steps;
    const std::int64_t shard =
        full ? own.begin + in % own.count() : last[static_cast<std::size_t>(in - in_full)];
    const std::int64_t iteration = unit / in_epoch * plan.steps_per_epoch() + step;
    if (iteration >= end) return std::nullopt;
    return plan.slice(iteration, shard);
  };
}

std::int64_t evaluation_chunk(const BatchSpec& batch) {
  if (batch.evaluate > 0) return batch.evaluate;
  return (batch.global + batch.shards - 1) / batch.shards;
}

Session::Session(const RunSpec& spec, const Graph& graph, DataSets data, const RunPlan& plan,
                 Communicator& comm, DeviceContext& device, Progress& progress)
    : spec_(spec),
      graph_(graph),
      comm_(comm),
      progress_(progress),
      data_(std::move(data)),
      plan_(plan),
      own_(share_of(spec.batch.shards, comm.rank(), comm.size())),
      replica_(graph, device, static_cast<std::uint64_t>(spec.seed), memory_mode(spec),
               backend_options(spec)) {
  const auto seed = static_cast<std::uint64_t>(spec.seed);
  const BatchPlan& batches = plan_.batches;
  agree(comm_, [&] {
    progress_.enter(Phase::model);
    // The largest shard, whoever has it: ranks must agree on the layouts.
    replica_.choose_layouts((batches.global() + batches.shards() - 1) / batches.shards());
    replica_.prepare(Mode::train, batches.shard_sizes(own_));
    if (data_.test) {
      evaluator_.emplace(comm_, replica_, *data_.test, loading_options(spec.data.test, seed),
                         evaluation_chunk(spec.batch));
    }
    require_memory(estimate_memory(spec, replica_, batches, own_, comm_.local_size()),
                   comm_.local_size(), available_memory());
  });
  // Apart from the last agreement: no rank takes memory before all have seen that there is enough.
  agree(comm_, [&] {
    sampler_.emplace(data_.train->size(), spec.data.train.shuffle, seed);
    optimizer_ = make_optimizer(
        spec.optimizer, graph.parameters(), [this](int i) { return replica_.layout_of(i); },
        device);
    ops_ = make_update_ops(device);
    record_.emplace(graph.statistic_elements(), spec.batch.shards);
    replica_.bind();
  });
  reducer_ = comm_.make_reducer(reducer_layout(spec, graph, *record_));
}

void Session::start_at(std::int64_t iteration) {
  LoaderOptions options = loading_options(spec_.data.train, static_cast<std::uint64_t>(spec_.seed));
  const std::vector<std::int64_t> sizes = plan_.batches.shard_sizes(own_);
  options.max_count = sizes.empty() ? 1 : sizes.back();
  options.progress = &progress_;
  loader_.emplace(
      *data_.train, *sampler_,
      shard_stream(plan_.batches, own_, iteration, std::numeric_limits<std::int64_t>::max()),
      options);
  step_.emplace(StepParts{plan_.batches, own_, *loader_, replica_, *reducer_, *optimizer_,
                          plan_.schedule, *ops_, progress_},
                *record_);
}

std::int64_t Session::own_samples(std::int64_t iteration) const {
  std::int64_t count = 0;
  for (std::int64_t shard = own_.begin; shard < own_.end; ++shard) {
    count += plan_.batches.slice(iteration, shard).count;
  }
  return count;
}

int Session::rank_of_shard(std::int64_t shard) const {
  for (int rank = 0; rank < comm_.size(); ++rank) {
    if (shard < share_of(spec_.batch.shards, rank, comm_.size()).end) return rank;
  }
  return comm_.size() - 1;
}

bool Session::exact() const {
  return sum_is_exact(spec_.batch.shards, comm_.ranks_by_node());
}

std::size_t Session::bytes() const {
  return replica_.bytes() + optimizer_->bytes() + reducer_->bytes() +
         (loader_ ? loader_->bytes() : 0);
}

}  // namespace annulus
