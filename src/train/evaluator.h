// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "io/dataset.h"
#include "io/loader.h"
#include "train/replica.h"

namespace annulus {

// Loss and metrics of a data set.
struct Metrics {
  std::int64_t samples = 0;  // that counted
  double loss = 0;
  std::vector<std::pair<std::string, double>> values;  // "top1", "top5", "mean_error"
};

// The means that a sum stands for; 0 where nothing counted.
Metrics to_metrics(const LossSums& sums, const LossSpec& loss, std::int64_t classes);

// Evaluates a data set in chunks of fixed size, shared out over the ranks and added up in fp64 in
// the order of chunks: the result is the same for any number of ranks, and each sample counts once.
class Evaluator {
 public:
  // `chunk` samples a pass; the executors for it are prepared in `replica`, to be bound by the
  // caller.
  Evaluator(Communicator& comm, Replica& replica, const Dataset& dataset, LoaderOptions loading,
            std::int64_t chunk);

  // Error (numeric), the same on every rank, where the loss of a chunk is not finite.
  Metrics run();

 private:
  [[noreturn]] void refuse_loss(std::int64_t chunk) const;

  Communicator& comm_;
  Replica& replica_;
  const Dataset& dataset_;
  LoaderOptions loading_;
  std::int64_t chunk_;
  std::int64_t chunks_;
};

}  // namespace annulus
