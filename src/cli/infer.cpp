// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "cli/commands.h"
#include "cli/job.h"
#include "cli/run_config.h"
#include "cli/spread.h"
#include "cli/start.h"
#include "comm/agree.h"
#include "core/finite.h"
#include "io/json.h"
#include "io/new_data_file.h"
#include "train/predictor.h"
#include "train/session.h"
#include "train/stop_signals.h"

namespace annulus {
namespace {

// How samples of the input become inputs: as those of the test data, or of the training data where
// there is none, or under the names of the model's inputs.
DataSpec input_spec(const RunConfig& config, const std::string& file) {
  DataSpec spec = config.spec.data.has_test ? config.spec.data.test : config.spec.data.train;
  spec.file = std::filesystem::absolute(file).string();
  spec.labels.clear();
  if (!spec.inputs.empty()) return spec;
  for (const ModelInput& input : config.graph->inputs()) {
    spec.inputs.push_back({input.name, input.name});
  }
  return spec;
}

DataDemand demand_of_inputs(const Graph& graph) {
  DataDemand demand = data_demand(graph);
  demand.target_kind = TargetKind::none;
  return demand;
}

// The output's data sets: "prediction" (samples, output of the model), and "class" (samples), the
// most likely one, where the model has classes.
class Output {
 public:
  Output(const Graph& graph, std::int64_t samples)
      : shape_(graph.values()[static_cast<std::size_t>(graph.output())].shape),
        classes_(graph.loss().kind == "mean_squared_error" ? 0 : graph.classes()),
        samples_(samples) {}

  std::int64_t bytes() const {
    constexpr std::int64_t element = 4;
    return samples_ * element * (shape_.elements() + (classes_ > 0 ? 1 : 0));
  }

  void create(Hdf5Writer& file) const {
    file.create("prediction", shape_.with_batch(samples_), DType::f32);
  }

  void take(Hdf5Writer& file, std::int64_t first, std::span<const float> rows) {
    const auto width = static_cast<std::size_t>(shape_.elements());
    file.write_rows(first, static_cast<std::int64_t>(rows.size() / width), std::as_bytes(rows));
    if (classes_ == 0) return;
    for (std::size_t begin = 0; begin < rows.size(); begin += width) {
      const std::span<const float> row = rows.subspan(begin, width);
      likeliest_.push_back(
          static_cast<std::int32_t>(std::max_element(row.begin(), row.end()) - row.begin()));
    }
  }

  void finish(Hdf5Writer& file) const {
    if (classes_ == 0) return;
    file.create("class", Shape{samples_}, DType::i32);
    file.write(std::as_bytes(std::span<const std::int32_t>(likeliest_)));
  }

 private:
  Shape shape_;
  std::int64_t classes_;
  std::int64_t samples_;
  std::vector<std::int32_t> likeliest_;
};

void print(const InferOptions& options, std::int64_t samples, double wall_s,
           const std::vector<double>& passes) {
  const Spread spread = spread_of(passes);
  const double rate = static_cast<double>(samples) / wall_s;
  if (options.json) {
    JsonObject json;
    json.set("samples", samples)
        .set("wall_s", wall_s)
        .set("samples_per_s", rate)
        .set("latency_s", to_json(spread).set("p50", spread.median).set("p99", spread.p99))
        .set("output", options.output);
    std::puts(json.text().c_str());
    return;
  }
  std::puts(fmt::format("{} samples in {:.2f} s: {:.1f} samples/s; a pass of rank 0: p50 {:.2f} "
                        "ms, p99 {:.2f} ms; predictions in '{}'",
                        samples, wall_s, rate, 1e3 * spread.median, 1e3 * spread.p99,
                        options.output)
                .c_str());
}

// Predicts on all ranks; rank 0 writes the output.
std::vector<double> predict(Predictor& predictor, Output output, const std::string& file,
                            Communicator& comm, StopSignals& signals) {
  if (comm.rank() != 0) return predictor.run(nullptr);
  std::vector<double> passes;
  const auto fill = [&](Hdf5Writer& writer) {
    output.create(writer);
    passes = predictor.run(
        [&](std::int64_t first, std::span<const float> rows) { output.take(writer, first, rows); });
    output.finish(writer);
  };
  const auto check_stop = [&] {
    if (!signals.requested()) return;
    fail(ErrorKind::stopped, "{} came; '{}' is not written", signals.name(), file);
  };
  write_new_data_file(file, output.bytes(), fill, check_stop);
  return passes;
}

void load_weights(const std::string& weights, Replica& replica, Communicator& comm) {
  NamedState state;
  replica.add_to(state);
  agree(comm, [&] {
    if (comm.rank() == 0) load_checkpoint(weights, state, true);
  });
  broadcast_state(comm, state);
  replica.weights_changed();
  agree(comm, [&] {
    require(all_finite(replica.weights()) && all_finite(replica.statistics()), ErrorKind::numeric,
            "the weights of '{}' are not finite", weights);
  });
}

}  // namespace

int run_infer(const InferOptions& options) {
  StopSignals signals;
  return run_job("infer", [&](Communicator& comm, Progress& progress) {
    Log log(comm.rank());
    RunConfig config = load_one_config(comm, options, log);
    Start start = start_job(config, std::nullopt, comm, log);
    const Graph& graph = *config.graph;
    progress.enter(Phase::scan);
    std::unique_ptr<Dataset> data;
    const DataSpec spec = input_spec(config, options.input);
    agree(comm, [&] { data = open_dataset(spec, demand_of_inputs(graph)); });

    const auto seed = static_cast<std::uint64_t>(config.spec.seed);
    Replica replica(graph, *start.device, seed, MemoryMode::planned, backend_options(config.spec));
    Predictor predictor(comm, replica, *data, loading_options(spec, seed),
                        evaluation_chunk(config.spec.batch));
    replica.bind();
    progress.enter(Phase::load);
    load_weights(options.weights, replica, comm);

    progress.enter(Phase::evaluate);
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<double> passes =
        predict(predictor, Output(graph, data->size()), options.output, comm, signals);
    const double wall_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (comm.rank() == 0) print(options, data->size(), wall_s, passes);
    return 0;
  });
}

}  // namespace annulus
