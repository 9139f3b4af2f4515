// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "core/device.h"
#include "core/log.h"
#include "core/placement.h"
#include "core/progress.h"
#include "io/dataset.h"
#include "io/loader.h"
#include "layers/graph.h"
#include "train/evaluator.h"
#include "train/optimizer.h"
#include "train/replica.h"
#include "train/run_plan.h"
#include "train/run_spec.h"
#include "train/step.h"

namespace annulus {

// What a model and its loss ask of a data set.
DataDemand data_demand(const Graph& graph);

// The data sets of a config. `train` and `test` are null where the config has none. Errors are
// those of open_dataset.
struct DataSets {
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> test;
};
DataSets open_data(const RunSpec& spec, const Graph& graph, bool want_train);
// The same on every rank, as Phase::scan: if one rank cannot open them, all throw. Collective.
DataSets open_data(const RunSpec& spec, const Graph& graph, bool want_train, Communicator& comm,
                   Progress& progress);

// How a loader treats the samples of a data set.
LoaderOptions loading_options(const DataSpec& data, std::uint64_t seed);

// The slices that the shards `own` of a plan take, from iteration `first` up to `end`, empty ones
// left out: what a rank's loader reads.
Loader::SliceAt shard_stream(const BatchPlan& plan, Span64 own, std::int64_t first,
                             std::int64_t end);

// Samples in a chunk of evaluation: a pure function of the config, since sums are taken by chunk.
std::int64_t evaluation_chunk(const BatchSpec& batch);

// All parts of a training run on one rank, made in the order in which they depend on each other.
class Session {
 public:
  // `plan` is that of `spec` and the size of the training set. Error (resource) where the ranks of
  // this node need more memory than it has. Collective.
  Session(const RunSpec& spec, const Graph& graph, DataSets data, const RunPlan& plan,
          Communicator& comm, DeviceContext& device, Progress& progress);

  // Makes the loader start at an iteration; to be called once, before the first step.
  void start_at(std::int64_t iteration);
  Step& step() { return *step_; }

  const RunSpec& spec() const { return spec_; }
  const Graph& graph() const { return graph_; }
  Communicator& comm() { return comm_; }
  Progress& progress() { return progress_; }
  Replica& replica() { return replica_; }
  Optimizer& optimizer() { return *optimizer_; }
  const BatchPlan& plan() const { return plan_.batches; }
  const Dataset& train_data() const { return *data_.train; }
  Evaluator* evaluator() { return evaluator_ ? &*evaluator_ : nullptr; }  // null: no test data
  // Updates of the whole run.
  std::int64_t total_updates() const { return plan_.updates; }
  std::int64_t own_shards() const { return own_.count(); }
  // Samples of an iteration that this rank computes.
  std::int64_t own_samples(std::int64_t iteration) const;
  // The rank that computes a shard.
  int rank_of_shard(std::int64_t shard) const;
  // Whether the sums of this job are those of one rank, bit for bit.
  bool exact() const;
  // Memory of all parts: weights, gradients, moments, values, batches.
  std::size_t bytes() const;

 private:
  const RunSpec& spec_;
  const Graph& graph_;
  Communicator& comm_;
  Progress& progress_;
  DataSets data_;
  RunPlan plan_;
  Span64 own_;
  Replica replica_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<UpdateOps> ops_;
  std::optional<Sampler> sampler_;
  std::optional<Evaluator> evaluator_;
  std::optional<StepRecord> record_;
  std::unique_ptr<GradientReducer> reducer_;
  std::optional<Loader> loader_;
  std::optional<Step> step_;
};

}  // namespace annulus
