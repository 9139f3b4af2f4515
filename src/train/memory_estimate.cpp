// SPDX-License-Identifier: Apache-2.0
#include "train/memory_estimate.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "core/error.h"
#include "core/host_memory.h"
#include "train/optimizer.h"
#include "train/step_record.h"

namespace annulus {
namespace {

constexpr std::int64_t float_bytes = sizeof(float);

std::int64_t sample_bytes(const Graph& graph) {
  std::int64_t elements = 1;  // the target
  for (const ModelInput& input : graph.inputs()) elements += input.shape.elements();
  return elements * float_bytes;
}

// One flat buffer for each level of the tree over the rank's own shards, and the slices of the
// neighbours' buffers that this rank sums and then copies.
std::int64_t gradient_bytes(std::int64_t flat, std::int64_t own, std::int64_t ranks) {
  const auto levels = std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(own, 1)));
  return flat * levels + 2 * flat * (ranks - 1) / ranks;
}

std::string gigabytes(std::int64_t bytes) {
  return fmt::format("{:.2f} GB", static_cast<double>(bytes) / 1e9);
}

}  // namespace

MemoryEstimate estimate_memory(const RunSpec& spec, const Replica& replica, const BatchPlan& plan,
                               Span64 own, std::int64_t ranks) {
  const Graph& graph = replica.graph();
  const StepRecord record(graph.statistic_elements(), plan.shards());
  const std::int64_t flat = (graph.flat_elements() + record.elements()) * float_bytes;
  const std::vector<std::int64_t> sizes = plan.shard_sizes(own);
  const std::int64_t largest = sizes.empty() ? 0 : sizes.back();

  MemoryEstimate estimate;
  estimate.process = resident_memory();
  estimate.weights = (graph.flat_elements() + graph.statistic_elements()) * float_bytes;
  estimate.values = static_cast<std::int64_t>(replica.unbound_bytes());
  estimate.moments = moments_of(spec.optimizer) * graph.flat_elements() * float_bytes;
  estimate.gradients = gradient_bytes(flat, own.count(), ranks);
  estimate.batches = (spec.data.train.prefetch + 1) * largest * sample_bytes(graph);
  return estimate;
}

void require_memory(const MemoryEstimate& estimate, std::int64_t ranks,
                    std::optional<std::int64_t> available) {
  if (!available || estimate.to_come() <= *available / ranks) return;
  throw Error(
      ErrorKind::resource,
      fmt::format("not enough memory for {} rank{} of {} on this node (values {}, weights "
                  "{}, gradients {}, moments {}, batches {}): lower batch.global, or spread "
                  "the ranks over more nodes",
                  ranks, ranks == 1 ? "" : "s", gigabytes(estimate.to_come()),
                  gigabytes(estimate.values), gigabytes(estimate.weights),
                  gigabytes(estimate.gradients), gigabytes(estimate.moments),
                  gigabytes(estimate.batches)))
      .values(fmt::format("at most {} bytes a rank", *available / ranks),
              fmt::format("{}", estimate.to_come()));
}

}  // namespace annulus
