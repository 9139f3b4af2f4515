// SPDX-License-Identifier: Apache-2.0
#include "train/evaluator.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/finite.h"
#include "core/shards.h"
#include "io/sampler.h"
#include "train/step_record.h"

namespace annulus {
namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

// A network may turn what is not finite into any number: a ReLU makes 0 of a NaN.
bool finite_inputs(const LoadedBatch& batch) {
  return std::all_of(batch.inputs.begin(), batch.inputs.end(), [](const TensorView& input) {
    return all_finite(
        {static_cast<const float*>(input.data), static_cast<std::size_t>(input.shape.elements())});
  });
}

}  // namespace

Metrics to_metrics(const LossSums& sums, const LossSpec& loss, std::int64_t classes) {
  Metrics metrics;
  metrics.samples = static_cast<std::int64_t>(sums.counted);
  const double count = std::max(sums.counted, 1.0);
  metrics.loss = sums.loss / count;
  if (loss.kind == "mean_squared_error") {
    metrics.values.emplace_back("mean_error", sums.absolute_error / count);
    return metrics;
  }
  for (std::size_t i = 0; i < loss.top_k.size() && i < 2; ++i) {
    if (loss.top_k[i] > classes) continue;
    metrics.values.emplace_back(fmt::format("top{}", loss.top_k[i]), sums.correct[i] / count);
  }
  return metrics;
}

Evaluator::Evaluator(Communicator& comm, Replica& replica, const Dataset& dataset,
                     LoaderOptions loading, std::int64_t chunk)
    : comm_(comm),
      replica_(replica),
      dataset_(dataset),
      loading_(std::move(loading)),
      chunk_(chunk) {
  chunk_ = std::min(chunk_, dataset_.size());
  chunks_ = (dataset_.size() + chunk_ - 1) / chunk_;
  loading_.max_count = chunk_;
  loading_.augment = {};
  const std::int64_t last = dataset_.size() - (chunks_ - 1) * chunk_;
  const std::int64_t sizes[] = {chunk_, last};
  replica_.prepare(Mode::evaluate, sizes);
}

// Every rank has the same table, so every rank throws.
void Evaluator::refuse_loss(std::int64_t chunk) const {
  const std::int64_t begin = chunk * chunk_;
  const std::int64_t last = std::min(begin + chunk_, dataset_.size()) - 1;
  int rank = 0;
  while (share_of(chunks_, rank, comm_.size()).end <= chunk) ++rank;
  throw Error(
      ErrorKind::numeric,
      fmt::format("the test loss is not finite at samples {} to {}; look at the weights and "
                  "at these samples",
                  begin, last))
      .agreed(rank, host_of(comm_, rank));
}

Metrics Evaluator::run() {
  const bool finite_weights = all_finite(replica_.weights()) && all_finite(replica_.statistics());
  const Span64 own = share_of(chunks_, comm_.rank(), comm_.size());
  const auto slice_at = [&](std::int64_t index) -> std::optional<Slice> {
    const std::int64_t chunk = own.begin + index;
    if (chunk >= own.end) return std::nullopt;
    const std::int64_t first = chunk * chunk_;
    return Slice{chunk, 0, first, std::min(chunk_, dataset_.size() - first)};
  };
  const Sampler in_order(dataset_.size(), false, 0);
  Loader loader(dataset_, in_order, slice_at, loading_);

  // Each chunk has a place of its own, which all ranks but one leave at zero: the sum is exact.
  std::vector<LossFields> table(static_cast<std::size_t>(chunks_));
  std::vector<const float*> inputs;
  while (const LoadedBatch* batch = loader.next()) {
    inputs.clear();
    for (const TensorView& input : batch->inputs)
      inputs.push_back(static_cast<const float*>(input.data));
    Executor& executor = replica_.executor(Mode::evaluate, batch->slice.count);
    executor.forward(inputs, replica_.buffers(nullptr, nullptr),
                     {batch->slice.iteration, batch->samples, replica_.version()});
    LossSums loss = executor.loss(batch->targets.data, 1);
    if (!finite_weights || !finite_inputs(*batch)) loss.loss = not_a_number;
    table[static_cast<std::size_t>(batch->slice.iteration)] = to_fields(loss);
  }
  const std::span<double> numbers(table.front().data(), table.size() * LossFields{}.size());
  comm_.all_reduce(TensorView(numbers), ReduceOp::sum);

  LossSums sums;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const LossSums chunk_sums = from_fields(table[i]);
    if (!std::isfinite(chunk_sums.loss)) refuse_loss(static_cast<std::int64_t>(i));
    sums += chunk_sums;
  }
  const Graph& graph = replica_.graph();
  return to_metrics(sums, graph.loss(), graph.classes());
}

}  // namespace annulus
