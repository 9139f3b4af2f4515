// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.h"
#include "io/loader.h"
#include "support/hdf5_writer.h"
#include "support/io_data.h"
#include "support/temp_dir.h"

using namespace annulus;
using namespace annulus::test;

namespace {

using Clock = std::chrono::steady_clock;

// Sample i is {i, -i} with label i mod 10. Reading may fail, or wait until it is let go.
class CountingDataset : public Dataset {
 public:
  explicit CountingDataset(std::int64_t size) : size_(size) {}
  std::int64_t size() const override { return size_; }
  const std::vector<Shape>& input_shapes() const override { return shapes_; }
  TargetKind target_kind() const override { return TargetKind::class_ids; }
  const Shape& target_shape() const override { return target_shape_; }
  std::string fingerprint() const override { return "counting"; }
  void read(std::span<const std::int64_t> ids, std::span<const TensorView> inputs,
            const TensorView& targets) const override {
    const int now = ++reading_;
    for (int most = most_reading_; now > most && !most_reading_.compare_exchange_weak(most, now);) {
    }
    for (std::size_t i = 0; i < ids.size(); ++i) {
      require(ids[i] != bad_sample, ErrorKind::data, "sample {} is bad", ids[i]);
      inputs[0].as<float>()[2 * i] = static_cast<float>(ids[i]);
      inputs[0].as<float>()[2 * i + 1] = -static_cast<float>(ids[i]);
      targets.as<std::int32_t>()[i] = static_cast<std::int32_t>(ids[i] % 10);
    }
    if (wait_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(wait_ms));
    --reading_;
    ++reads;
  }
  int most_reading() const { return most_reading_; }

  std::int64_t bad_sample = -1;
  int wait_ms = 0;
  mutable std::atomic<int> reads{0};

 private:
  std::int64_t size_;
  std::vector<Shape> shapes_ = {Shape{2}};
  Shape target_shape_;
  mutable std::atomic<int> reading_{0};
  mutable std::atomic<int> most_reading_{0};
};

// `epochs` epochs of `samples` in batches of `batch`, the last of each epoch short.
Loader::SliceAt epochs_of(std::int64_t samples, std::int64_t batch, std::int64_t epochs) {
  return [=](std::int64_t index) -> std::optional<Slice> {
    const std::int64_t steps = (samples + batch - 1) / batch;
    if (index >= steps * epochs) return std::nullopt;
    const std::int64_t first = index % steps * batch;
    return Slice{index, index / steps, first, std::min(batch, samples - first)};
  };
}

LoaderOptions options_of(std::int64_t batch, std::int64_t workers, std::int64_t prefetch) {
  LoaderOptions options;
  options.max_count = batch;
  options.workers = workers;
  options.prefetch = prefetch;
  return options;
}

std::vector<std::int64_t> delivered(Loader& loader) {
  std::vector<std::int64_t> ids;
  while (const LoadedBatch* batch = loader.next()) {
    REQUIRE(batch->inputs[0].shape == Shape{batch->slice.count, 2});
    for (std::size_t i = 0; i < batch->samples.size(); ++i) {
      REQUIRE(batch->inputs[0].as<float>()[2 * i] == static_cast<float>(batch->samples[i]));
      REQUIRE(batch->targets.as<std::int32_t>()[i] == batch->samples[i] % 10);
    }
    ids.insert(ids.end(), batch->samples.begin(), batch->samples.end());
  }
  return ids;
}

// A value for each pixel of each sample, so that a wrong row or a mixture of two shows.
std::uint8_t pixel(std::int64_t sample, std::int64_t place) {
  return static_cast<std::uint8_t>(sample * 31 + place * 7 + sample / 8);
}

}  // namespace

TEST_CASE("B64 any prefetch and number of workers gives the batches that none gives") {
  const CountingDataset dataset(37);
  const Sampler sampler(37, true, 3);
  Loader plain(dataset, sampler, epochs_of(37, 8, 5), options_of(8, 0, 0));
  const std::vector<std::int64_t> wanted = delivered(plain);
  REQUIRE(wanted.size() == 5 * 37);
  std::vector<std::int64_t> epoch(wanted.begin(), wanted.begin() + 37);
  std::sort(epoch.begin(), epoch.end());
  CHECK(epoch.front() == 0);
  CHECK(std::adjacent_find(epoch.begin(), epoch.end()) == epoch.end());
  for (std::int64_t prefetch : {1, 2, 8}) {
    for (std::int64_t workers : {1, 2, 8}) {
      CAPTURE(prefetch);
      CAPTURE(workers);
      for (int repeat = 0; repeat < 20; ++repeat) {
        Loader loader(dataset, sampler, epochs_of(37, 8, 5), options_of(8, workers, prefetch));
        REQUIRE(delivered(loader) == wanted);
        REQUIRE(loader.next() == nullptr);
      }
    }
  }
}

TEST_CASE("B64 an error of a worker is thrown in the place of its batch, again and again") {
  CountingDataset dataset(100);
  dataset.bad_sample = 90;
  const Sampler sampler(100, false, 0);
  for (std::int64_t workers : {0, 1, 4}) {
    CAPTURE(workers);
    Loader loader(dataset, sampler, epochs_of(100, 8, 1), options_of(8, workers, 4));
    for (int i = 0; i < 11; ++i) REQUIRE(loader.next() != nullptr);
    CHECK_THROWS_WITH_AS(loader.next(), "sample 90 is bad", Error);
    CHECK_THROWS_WITH_AS(loader.next(), "sample 90 is bad", Error);
  }
}

TEST_CASE("B64 an early stop joins the threads at once") {
  CountingDataset dataset(10'000);
  dataset.wait_ms = 20;
  const Sampler sampler(10'000, true, 1);
  auto loader =
      std::make_unique<Loader>(dataset, sampler, epochs_of(10'000, 8, 5), options_of(8, 4, 8));
  for (int i = 0; i < 3; ++i) REQUIRE(loader->next() != nullptr);
  const auto begin = Clock::now();
  loader.reset();
  CHECK(Clock::now() - begin < std::chrono::seconds(2));
}

TEST_CASE("a loader that nobody asks stops too, with full and with empty slots") {
  const CountingDataset dataset(100);
  const Sampler sampler(100, true, 1);
  for (int repeat = 0; repeat < 50; ++repeat) {
    const Loader loader(dataset, sampler, epochs_of(100, 8, 1), options_of(8, 3, 2));
  }
  CHECK(dataset.reads <= 150);
}

TEST_CASE("no more batches are read ahead than prefetch says") {
  CountingDataset dataset(1000);
  const Sampler sampler(1000, false, 0);
  Loader loader(dataset, sampler, epochs_of(1000, 10, 1), options_of(10, 4, 3));
  REQUIRE(loader.next() != nullptr);
  // The workers are done with the batch in use and the three ahead when the count stands still.
  const auto deadline = Clock::now() + std::chrono::seconds(10);
  while (dataset.reads < 4 && Clock::now() < deadline) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(dataset.reads == 4);
}

TEST_CASE("workers read at the same time") {
  CountingDataset dataset(1000);
  dataset.wait_ms = 20;
  const Sampler sampler(1000, false, 0);
  Loader loader(dataset, sampler, epochs_of(200, 10, 1), options_of(10, 4, 8));
  const auto begin = Clock::now();
  CHECK(delivered(loader).size() == 200);
  CHECK(dataset.most_reading() > 1);
  CHECK(dataset.most_reading() <= 4);
  CHECK(loader.waited_s() > 0);
  CHECK(loader.waited_s() <= std::chrono::duration<double>(Clock::now() - begin).count());
}

TEST_CASE("the memory of a loader is that of prefetch + 1 batches") {
  const CountingDataset dataset(100);
  const Sampler sampler(100, false, 0);
  const std::size_t batch = 8 * (2 * sizeof(float) + sizeof(std::int32_t));
  CHECK(Loader(dataset, sampler, epochs_of(100, 8, 1), options_of(8, 1, 3)).bytes() == 4 * batch);
  CHECK(Loader(dataset, sampler, epochs_of(100, 8, 1), options_of(8, 0, 3)).bytes() == batch);
}

TEST_CASE("a slice that is larger than the loader was made for is a bug") {
  const CountingDataset dataset(100);
  const Sampler sampler(100, false, 0);
  Loader loader(dataset, sampler, epochs_of(100, 9, 1), options_of(8, 1, 1));
  CHECK_THROWS_WITH_AS(loader.next(), doctest::Contains("a batch of 9 samples"), Error);
}

TEST_CASE("B04 every sample is right with 1, 2 and 8 workers on a compressed file") {
  constexpr std::int64_t samples = 203;
  constexpr std::int64_t pixels = 3 * 6 * 7;
  const TempDir dir;
  {
    std::vector<std::uint8_t> x;
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < samples; ++i) {
      for (std::int64_t p = 0; p < pixels; ++p) x.push_back(pixel(i, p));
      labels.push_back(i % 10);
    }
    TestFile file(dir / "a.h5");
    file.add<std::uint8_t>("deflate", {samples, 3, 6, 7}, H5T_STD_U8LE, x, {{16, 3, 6, 7}, true});
    file.add<std::uint8_t>("plain", {samples, 3, 6, 7}, H5T_STD_U8LE, x);
    file.add<std::int64_t>("labels", {samples}, H5T_STD_I64LE, labels, {{32}, true});
  }
  for (const char* path : {"deflate", "plain"}) {
    for (std::int64_t workers : {1, 2, 8}) {
      CAPTURE(path);
      CAPTURE(workers);
      const auto dataset =
          open_dataset(spec_of(dir / "a.h5", path, "labels"), demand_of({3, 6, 7}, 10));
      const Sampler sampler(samples, true, 8);
      LoaderOptions options = options_of(16, workers, 8);
      options.scale = 0.5;
      options.mean = {1};
      Loader loader(*dataset, sampler, epochs_of(samples, 16, 10), options);
      std::int64_t wrong = 0;
      std::int64_t seen = 0;
      while (const LoadedBatch* batch = loader.next()) {
        const std::span<const float> x = batch->inputs[0].as<float>();
        for (std::size_t i = 0; i < batch->samples.size(); ++i, ++seen) {
          wrong += batch->targets.as<std::int32_t>()[i] != batch->samples[i] % 10 ? 1 : 0;
          for (std::int64_t p = 0; p < pixels; ++p) {
            const float wanted = pixel(batch->samples[i], p) * 0.5F - 1;
            wrong += x[i * pixels + static_cast<std::size_t>(p)] != wanted ? 1 : 0;
          }
        }
      }
      CHECK(seen == 10 * samples);
      CHECK(wrong == 0);
    }
  }
}
