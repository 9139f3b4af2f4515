// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdio>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/job.h"
#include "cli/run_config.h"
#include "cli/start.h"
#include "cli/version.h"
#include "core/buffer.h"
#include "io/hdf5_source.h"
#include "io/json.h"
#include "io/row_reader.h"
#include "train/session.h"

namespace annulus {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The samples of batch after batch, epoch after epoch.
class Order {
 public:
  Order(const RunSpec& spec, std::int64_t samples)
      : sampler_(samples, spec.data.train.shuffle, static_cast<std::uint64_t>(spec.seed)),
        batch_(std::min(spec.batch.global, samples)),
        batches_(samples / batch_) {}

  const Sampler& sampler() const { return sampler_; }
  std::int64_t batch() const { return batch_; }
  std::int64_t batches() const { return batches_; }  // whole ones of an epoch
  Slice slice(std::int64_t index) const {
    return {index, index / batches_, index % batches_ * batch_, batch_};
  }
  void samples(std::int64_t index, std::vector<std::int64_t>& ids) const {
    const Slice s = slice(index);
    ids.clear();
    for (std::int64_t i = 0; i < s.count; ++i) {
      ids.push_back(sampler_.sample(s.epoch, s.first + i));
    }
  }

 private:
  Sampler sampler_;
  std::int64_t batch_;
  std::int64_t batches_;
};

struct Rate {
  double samples_per_s = 0;
  double bytes_per_s = 0;  // as stored
};

// Reads as the loader's threads do, by one thread, and converts nothing.
class StoredReading {
 public:
  StoredReading(const DataSpec& spec, const Order& order) : order_(order) {
    for (const InputSource& input : spec.inputs) {
      sources_.emplace_back(spec.file, input.dataset);
      row_bytes_ += sources_.back().row_bytes();
      memory_.push_back(
          Buffer::host(static_cast<std::size_t>(order.batch()) * sources_.back().row_bytes()));
    }
  }

  std::size_t row_bytes() const { return row_bytes_; }
  const char* way() const { return sources_.front().way(); }

  void read(std::int64_t index) {
    order_.samples(index, ids_);
    scratch_.plan(ids_);
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      std::span<std::byte> to(memory_[i].as<std::byte>(), memory_[i].bytes());
      for (const Run& run : scratch_.runs()) {
        const std::size_t bytes = static_cast<std::size_t>(run.count()) * sources_[i].row_bytes();
        sources_[i].read(run.first, run.count(), to.first(bytes));
        to = to.subspan(bytes);
      }
    }
  }

 private:
  const Order& order_;
  std::vector<Hdf5Source> sources_;
  std::size_t row_bytes_ = 0;
  std::vector<Buffer> memory_;
  std::vector<std::int64_t> ids_;
  ReadScratch scratch_;
};

// Does next() for each batch, an epoch first that is not timed: it fills the page cache.
template <class Next>
Rate measure(const Order& order, double seconds, std::size_t row_bytes, Communicator& comm,
             const Next& next) {
  std::int64_t index = 0;
  for (; index < order.batches(); ++index) next(index);
  comm.barrier();
  const auto start = Clock::now();
  const std::int64_t first = index;
  double wall_s = 0;
  do {
    next(index++);
    wall_s = seconds_since(start);
  } while (wall_s < seconds);
  // Ranks do not wait for each other: their rates add up.
  double rate = static_cast<double>((index - first) * order.batch()) / wall_s;
  comm.all_reduce(TensorView(std::span<double>(&rate, 1)), ReduceOp::sum);
  return {rate, rate * static_cast<double>(row_bytes)};
}

void print(const BenchDataOptions& options, const RunSpec& spec, const Order& order,
           const StoredReading& stored, const Rate& reading, const Rate& loading, int ranks) {
  if (options.json) {
    JsonObject json;
    json.set("name", spec.name)
        .set("file", spec.data.train.file)
        .set("ranks", ranks)
        .set("batch", order.batch())
        .set("shuffle", spec.data.train.shuffle)
        .set("workers", spec.data.train.workers)
        .set("reads_by", stored.way())
        .set("sample_bytes", static_cast<std::int64_t>(stored.row_bytes()))
        .set("bytes_per_s", reading.bytes_per_s)
        .set("samples_per_s", reading.samples_per_s)
        .set("loader_samples_per_s", loading.samples_per_s)
        .set("loader_bytes_per_s", loading.bytes_per_s)
        .set("versions", versions_line());
    std::puts(json.text().c_str());
    return;
  }
  std::puts(fmt::format("{} {} batches of {} samples, {} bytes each, from '{}'", order.batches(),
                        spec.data.train.shuffle ? "shuffled" : "ordered", order.batch(),
                        stored.row_bytes(), spec.data.train.file)
                .c_str());
  std::puts(fmt::format("as stored, one thread, by {}: {:.1f} samples/s, {:.3f} GB/s", stored.way(),
                        reading.samples_per_s, 1e-9 * reading.bytes_per_s)
                .c_str());
  std::puts(fmt::format("through the loader, {} worker{}: {:.1f} samples/s, {:.3f} GB/s as stored",
                        spec.data.train.workers, spec.data.train.workers == 1 ? "" : "s",
                        loading.samples_per_s, 1e-9 * loading.bytes_per_s)
                .c_str());
}

}  // namespace

int run_bench_data(const BenchDataOptions& options) {
  return run_job("bench data", [&](Communicator& comm, Progress& progress) {
    Log log(comm.rank());
    RunConfig config = load_one_config(comm, options, log);
    config.spec.data.has_test = false;
    require(config.spec.data.has_train && !config.spec.data.synthetic, ErrorKind::usage,
            "nothing to read: the config has no [data.train], or data.synthetic = true");
    const Start start = start_job(config, std::nullopt, comm, log);
    const DataSets data = open_data(config.spec, *config.graph, true, comm, progress);
    const Order order(config.spec, data.train->size());

    StoredReading stored(config.spec.data.train, order);
    const Rate reading = measure(order, options.seconds, stored.row_bytes(), comm,
                                 [&](std::int64_t index) { stored.read(index); });

    LoaderOptions loading =
        loading_options(config.spec.data.train, static_cast<std::uint64_t>(config.spec.seed));
    loading.max_count = order.batch();
    Loader loader(
        *data.train, order.sampler(),
        [&](std::int64_t index) -> std::optional<Slice> { return order.slice(index); }, loading);
    const Rate loaded = measure(order, options.seconds, stored.row_bytes(), comm,
                                [&](std::int64_t) { loader.next(); });
    if (comm.rank() == 0) {
      print(options, config.spec, order, stored, reading, loaded, comm.size());
    }
    return 0;
  });
}

}  // namespace annulus
