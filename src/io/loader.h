// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/progress.h"
#include "core/tensor.h"
#include "io/data_spec.h"
#include "io/dataset.h"
#include "io/sampler.h"

namespace annulus {

// One piece of work for the loader: the samples at positions [first, first + count) of an epoch.
struct Slice {
  std::int64_t iteration = 0;
  std::int64_t epoch = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;  // at least 1
};

// A batch in host memory, ready for the network.
struct LoadedBatch {
  Slice slice;
  std::vector<std::int64_t> samples;  // ids
  std::vector<TensorView> inputs;     // f32, (count, C, H, W), scaled and augmented
  TensorView targets;                 // i32 (count) or f32 (count, ...)
};

struct LoaderOptions {
  std::int64_t max_count = 0;  // largest Slice::count
  std::int64_t workers = 1;
  std::int64_t prefetch = 2;
  double scale = 1;
  std::vector<double> mean;
  std::vector<double> std;
  AugmentSpec augment;                 // evaluation leaves it at its default
  std::uint64_t seed = 0;              // of the augmentation
  const Progress* progress = nullptr;  // where its threads find the trace to record in; may be null
};

// Prepares batches ahead, on threads of its own, in buffers made once. Batches come in the order of
// the slices whatever the number of workers, and their contents depend on slice and seed alone.
class Loader {
 public:
  // The index-th slice, or nothing at the end. Pure; called from the loader's threads.
  using SliceAt = std::function<std::optional<Slice>(std::int64_t index)>;

  // `dataset` and `sampler` must outlive the loader.
  Loader(const Dataset& dataset, const Sampler& sampler, SliceAt slice_at,
         const LoaderOptions& options);
  ~Loader();  // stops the threads within one read
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next batch, or null after the last; it stays valid until the next call. Waits for a worker;
  // an error of a worker is thrown here.
  const LoadedBatch* next();

  // Seconds that next() has waited since the start.
  double waited_s() const;
  // Memory of the batch buffers.
  std::size_t bytes() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace annulus
