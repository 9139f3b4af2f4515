// SPDX-License-Identifier: Apache-2.0
#include "train/predictor.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "core/error.h"
#include "core/finite.h"
#include "io/sampler.h"

namespace annulus {
namespace {

void require_finite(const LoadedBatch& batch) {
  for (const TensorView& input : batch.inputs) {
    const auto* values = static_cast<const float*>(input.data);
    const auto row = static_cast<std::size_t>(input.shape.elements() / batch.slice.count);
    for (std::size_t i = 0; i < batch.samples.size(); ++i) {
      require(all_finite({values + i * row, row}), ErrorKind::data,
              "sample {} has an input that is not finite", batch.samples[i]);
    }
  }
}

}  // namespace

Predictor::Predictor(Communicator& comm, Replica& replica, const Dataset& dataset,
                     LoaderOptions loading, std::int64_t chunk)
    : comm_(comm),
      replica_(replica),
      dataset_(dataset),
      loading_(std::move(loading)),
      chunk_(std::min(chunk, dataset.size())) {
  chunks_ = (dataset_.size() + chunk_ - 1) / chunk_;
  loading_.max_count = chunk_;
  loading_.augment = {};
  const std::int64_t sizes[] = {chunk_, count_of(chunks_ - 1)};
  replica_.prepare(Mode::evaluate, sizes);
}

std::int64_t Predictor::count_of(std::int64_t chunk) const {
  return std::min(chunk_, dataset_.size() - chunk * chunk_);
}

std::vector<double> Predictor::run(const Take& take) {
  using Clock = std::chrono::steady_clock;
  const int ranks = comm_.size();
  const auto slice_at = [&](std::int64_t index) -> std::optional<Slice> {
    const std::int64_t chunk = index * ranks + comm_.rank();
    if (chunk >= chunks_) return std::nullopt;
    return Slice{chunk, 0, chunk * chunk_, count_of(chunk)};
  };
  const Sampler in_order(dataset_.size(), false, 0);
  Loader loader(dataset_, in_order, slice_at, loading_);

  const Graph& graph = replica_.graph();
  const std::int64_t width =
      graph.values()[static_cast<std::size_t>(graph.output())].shape.elements();
  std::vector<float> mine(static_cast<std::size_t>(chunk_ * width));
  std::vector<float> all(mine.size() * static_cast<std::size_t>(ranks));
  std::vector<const float*> inputs;
  std::vector<double> seconds;
  for (std::int64_t first = 0; first < chunks_; first += ranks) {
    if (const LoadedBatch* batch = loader.next()) {
      require_finite(*batch);
      inputs.clear();
      for (const TensorView& input : batch->inputs)
        inputs.push_back(static_cast<const float*>(input.data));
      Executor& executor = replica_.executor(Mode::evaluate, batch->slice.count);
      const auto start = Clock::now();
      executor.forward(inputs, replica_.buffers(nullptr, nullptr),
                       {batch->slice.iteration, batch->samples, replica_.version()});
      seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
      std::copy_n(executor.prediction(), batch->slice.count * width, mine.begin());
    }
    comm_.all_gather(TensorView(std::span<float>(mine)), TensorView(std::span<float>(all)));
    if (comm_.rank() != 0) continue;
    for (std::int64_t chunk = first; chunk < std::min(first + ranks, chunks_); ++chunk) {
      const std::span<const float> part(all.data() + (chunk - first) * chunk_ * width,
                                        static_cast<std::size_t>(count_of(chunk) * width));
      take(chunk * chunk_, part);
    }
  }
  return seconds;
}

}  // namespace annulus
