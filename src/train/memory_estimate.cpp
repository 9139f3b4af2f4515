// SPDX-License-Identifier: Apache-2.0
#include "train/memory_estimate.h"

#include <algorithm>
#include <bit>
#include <fstream>

#include <unistd.h>

#include "train/optimizer.h"
#include "train/session.h"

namespace annulus {
namespace {

std::int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t total = 0;
  std::int64_t resident = 0;
  statm >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

std::int64_t sample_bytes(const Graph& graph) {
  std::int64_t elements = 1;  // the target
  for (const ModelInput& input : graph.inputs()) elements += input.shape.elements();
  return elements * static_cast<std::int64_t>(sizeof(float));
}

// One flat buffer for each level of the tree over the rank's own shards, and the slices of the
// neighbours' buffers that this rank sums and then copies.
std::int64_t gradient_bytes(std::int64_t flat, std::int64_t own, std::int64_t ranks) {
  const auto levels = std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(own, 1)));
  return flat * levels + 2 * flat * (ranks - 1) / ranks;
}

}  // namespace

MemoryEstimate estimate_memory(const RunSpec& spec, const Graph& graph, DeviceContext& device,
                               const BatchPlan& plan, std::int64_t ranks) {
  const Span64 own =
      share_of(plan.shards(), ranks - 1, ranks);  // the last rank's share is the largest
  const std::vector<std::int64_t> sizes = plan.shard_sizes(own);
  Replica replica(graph, device, static_cast<std::uint64_t>(spec.seed), MemoryMode::planned);
  replica.prepare(Mode::train, sizes);
  if (spec.data.has_test) {
    const std::int64_t chunk[] = {evaluation_chunk(spec.batch)};
    replica.prepare(Mode::evaluate, chunk);
  }
  const StepRecord record(graph.statistic_elements(), plan.shards());
  const std::int64_t flat =
      (graph.parameter_elements() + record.elements()) * static_cast<std::int64_t>(sizeof(float));

  MemoryEstimate estimate;
  estimate.process = resident_bytes();
  estimate.values = static_cast<std::int64_t>(replica.unbound_bytes());
  estimate.moments =
      static_cast<std::int64_t>(make_optimizer(spec.optimizer, graph, device)->bytes());
  estimate.gradients = gradient_bytes(flat, own.count(), ranks);
  const std::int64_t largest = sizes.empty() ? 0 : sizes.back();
  estimate.batches = (spec.data.train.prefetch + 1) * largest * sample_bytes(graph);
  return estimate;
}

}  // namespace annulus
