// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "io/dataset.h"
#include "io/loader.h"
#include "train/replica.h"

namespace annulus {

// Sends a data set through the network in chunks of fixed size, which the ranks take in turn.
class Predictor {
 public:
  // Predictions of samples first, first + 1, ...: one row each, as the graph's output has them.
  using Take = std::function<void(std::int64_t first, std::span<const float> rows)>;

  // `chunk` samples a pass; the executors for it are prepared in `replica`, to be bound by the
  // caller.
  Predictor(Communicator& comm, Replica& replica, const Dataset& dataset, LoaderOptions loading,
            std::int64_t chunk);

  // Rank 0 takes all predictions in the order of samples. Returns the seconds of each of this
  // rank's passes through the network. Error (data) where an input is not finite, which a network
  // can turn into any number. Collective.
  std::vector<double> run(const Take& take);

 private:
  std::int64_t count_of(std::int64_t chunk) const;

  Communicator& comm_;
  Replica& replica_;
  const Dataset& dataset_;
  LoaderOptions loading_;
  std::int64_t chunk_;
  std::int64_t chunks_;
};

}  // namespace annulus
