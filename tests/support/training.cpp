// SPDX-License-Identifier: Apache-2.0
#include "support/training.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "comm/job.h"
#include "config/config.h"

namespace annulus::testing {
namespace {

struct ReadConfig {
  RunSpec spec;
  std::unique_ptr<Graph> graph;
  Value value;
};

ReadConfig read(const std::string& text) {
  ReadConfig config;
  Problems problems;
  Value value = parse_config(text, "test.toml");
  expand_blocks(value, problems);
  read_run_spec(value, config.spec, problems);
  config.graph = std::make_unique<Graph>(std::move(config.spec.model), problems);
  problems.throw_if_any();
  config.value = std::move(value);
  return config;
}

RankOutcome train_rank(const TrainingJob& job, Communicator& comm) {
  ReadConfig config = read(job.config);
  if (config.spec.batch.shards == 0) config.spec.batch.shards = comm.size();
  const std::unique_ptr<DeviceContext> device = make_device(DeviceKind::cpu, Placement{});
  Progress progress;
  DataSets data = job.data();
  const RunPlan plan = plan_run(config.spec, *config.graph, config.value, data.train->size());
  Session session(config.spec, *config.graph, std::move(data), plan, comm, *device, progress);
  session.start_at(0);

  RankOutcome outcome;
  for (std::int64_t update = 0; update < session.total_updates(); ++update) {
    const StepReport report = session.step().run(update, update, false);
    outcome.losses.push_back(report.sums.loss / std::max(report.sums.counted, 1.0));
    outcome.norms.push_back(report.update.gradient_norm);
  }
  if (session.evaluator() != nullptr) outcome.result.test = session.evaluator()->run();
  outcome.result.weights_hash = session.replica().weights_hash();
  const std::span<float> weights = session.replica().weights();
  outcome.weights.assign(weights.begin(), weights.end());
  const std::span<float> statistics = session.replica().statistics();
  outcome.statistics.assign(statistics.begin(), statistics.end());
  return outcome;
}

}  // namespace

MemoryDataset::MemoryDataset(Shape shape, std::vector<float> inputs,
                             std::vector<std::int32_t> labels)
    : shapes_{shape},
      inputs_(std::move(inputs)),
      labels_(std::move(labels)),
      kind_(TargetKind::class_ids),
      size_(static_cast<std::int64_t>(labels_.size())) {}

MemoryDataset::MemoryDataset(Shape shape, std::vector<float> inputs, std::vector<float> values)
    : shapes_{shape},
      inputs_(std::move(inputs)),
      values_(std::move(values)),
      kind_(TargetKind::values),
      size_(static_cast<std::int64_t>(inputs_.size()) / shape.elements()) {
  target_shape_ = Shape{static_cast<std::int64_t>(values_.size()) / size_};
}

void MemoryDataset::read(std::span<const std::int64_t> ids, std::span<const TensorView> inputs,
                         const TensorView& targets) const {
  const auto width = static_cast<std::size_t>(shapes_[0].elements());
  const auto outputs = static_cast<std::size_t>(target_shape_.elements());
  float* to = inputs[0].as<float>().data();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto id = static_cast<std::size_t>(ids[i]);
    std::copy_n(inputs_.data() + id * width, width, to + i * width);
    if (kind_ == TargetKind::class_ids) {
      targets.as<std::int32_t>()[i] = labels_[id];
    } else {
      std::copy_n(values_.data() + id * outputs, outputs, targets.as<float>().data() + i * outputs);
    }
  }
}

std::vector<RankOutcome> train(const TrainingJob& job) {
  std::vector<RankOutcome> outcomes(static_cast<std::size_t>(job.ranks));
  run_as_threads(job.ranks, job.nodes, [&](Communicator& comm) {
    outcomes[static_cast<std::size_t>(comm.rank())] = train_rank(job, comm);
  });
  return outcomes;
}

}  // namespace annulus::testing
