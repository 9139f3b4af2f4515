// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/job.h"
#include "cli/version.h"
#include "core/error.h"
#include "core/schema.h"
#include "layers/cpu_isa.h"

namespace annulus {
namespace {

// A sub-command whose callback sets `code`. Its options live as long as the parser does.
template <class Options>
std::pair<CLI::App*, Options*> command(CLI::App& parent, const char* name, const char* help,
                                       const char* example, int (*run)(const Options&), int& code) {
  CLI::App* app = parent.add_subcommand(name, help);
  app->footer(std::string("Example:\n  ") + example);
  auto options = std::make_shared<Options>();
  app->callback([options, run, &code] { code = run(*options); });
  return {app, options.get()};
}

void add_config(CLI::App* app, ConfigOptions* options) {
  app->add_option("config", options->config, "config file (TOML)")->required();
  app->add_option("--set", options->sets, "set one key: a.b=value; may be given several times")
      ->type_name("K=V")
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false);
}

// "" is what a script's empty variable leaves, and never what is meant.
CLI::Validator a_path() {
  return {[](const std::string& text) { return text.empty() ? "the path is empty" : ""; }, "PATH"};
}

void add_json(CLI::App* app, bool* json) {
  app->add_flag("--json", *json, "print one JSON object on standard output");
}

constexpr std::int64_t most_steps = 1'000'000'000;

void add_train(CLI::App& root, int& code) {
  auto [app, options] = command<TrainOptions>(
      root, "train", "train a network, as a plain process or under mpirun or srun",
      "mpirun -n 2 annulus train configs/digits.toml --set train.epochs=5", run_train, code);
  add_config(app, options);
  app->add_option("--run-dir", options->run_dir, "where to write (default: runs/NAME-DATE-TIME)")
      ->check(a_path());
  app->add_flag("--resume", options->resume, "go on from the latest checkpoint in --run-dir");
  app->add_option("--resume-from", options->resume_from, "start from this checkpoint's state")
      ->check(a_path());
}

void add_eval(CLI::App& root, int& code) {
  auto [app, options] = command<EvalOptions>(
      root, "eval", "loss and metrics of a checkpoint on [data.test]",
      "annulus eval configs/digits.toml --weights runs/digits/checkpoints/step_0000000690",
      run_eval, code);
  add_config(app, options);
  app->add_option("--weights", options->weights, "checkpoint directory")
      ->required()
      ->check(a_path());
  add_json(app, &options->json);
}

void add_infer(CLI::App& root, int& code) {
  auto [app, options] = command<InferOptions>(
      root, "infer", "predictions of a checkpoint for all samples of an HDF5 file",
      "annulus infer configs/digits.toml --weights runs/digits/checkpoints/step_0000000690 --input "
      "data/digits.h5 --output predictions.h5",
      run_infer, code);
  add_config(app, options);
  app->add_option("--weights", options->weights, "checkpoint directory")
      ->required()
      ->check(a_path());
  app->add_option("--input", options->input,
                  "HDF5 file, read as [data.test] says (else [data.train])")
      ->required()
      ->check(a_path());
  app->add_option("--output", options->output, "HDF5 file to write; never overwritten")
      ->required()
      ->check(a_path());
  add_json(app, &options->json);
}

void add_check(CLI::App& root, int& code) {
  auto [app, options] = command<CheckOptions>(
      root, "check", "all problems of a config, and what it needs, without a cluster",
      "annulus check configs/imagenet_resnet50.toml --ranks 8", run_check, code);
  add_config(app, options);
  app->add_option("--ranks", options->ranks, "number of ranks to plan for")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  add_json(app, &options->json);
}

void add_allreduce(CLI::App& bench, int& code) {
  auto [app, options] = command<AllreduceOptions>(
      bench, "allreduce", "time and bandwidth of gradient sums over the ranks, by size",
      "mpirun -n 2 annulus bench allreduce --bytes 1K,25M,102400000", run_bench_allreduce, code);
  app->add_option("--bytes", options->bytes, "sizes of fp32 buffers; K, M and G are powers of 1024")
      ->type_name("LIST")
      ->capture_default_str();
  app->add_option("--steps", options->steps, "timed sums of each size")
      ->check(CLI::Range(std::int64_t{1}, most_steps));
  app->add_option("--warmup", options->warmup, "sums before them that are not timed")
      ->check(CLI::Range(std::int64_t{0}, most_steps));
  app->add_flag("--json", options->json, "print one JSON object a size on standard output");
}

void add_bench_data(CLI::App& bench, int& code) {
  auto [app, options] = command<BenchDataOptions>(
      bench, "data", "rate of reading the training data, as stored and through the loader",
      "annulus bench data configs/imagenet_resnet50.toml --set data.train.workers=2",
      run_bench_data, code);
  add_config(app, options);
  app->add_option("--seconds", options->seconds, "time of each of the two measurements")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
  add_json(app, &options->json);
}

void add_bench(CLI::App& root, int& code) {
  CLI::App* bench = root.add_subcommand("bench", "measurements");
  bench->require_subcommand(1);
  const auto add = [&](const char* name, const char* help, const char* example,
                       int (*run)(const BenchStepOptions&)) {
    auto [app, options] = command<BenchStepOptions>(*bench, name, help, example, run, code);
    add_config(app, options);
    app->add_option("--steps", options->steps, "timed steps")
        ->check(CLI::Range(std::int64_t{1}, most_steps));
    app->add_option("--warmup", options->warmup, "steps before them that are not timed")
        ->check(CLI::Range(std::int64_t{0}, most_steps));
    add_json(app, &options->json);
  };
  add("step", "time of a training step and its parts",
      "annulus bench step configs/imagenet_resnet50.toml --set data.synthetic=true --set "
      "batch.global=16",
      run_bench_step);
  add("infer", "time of a forward pass alone, with batch norm folded into convolutions",
      "annulus bench infer configs/imagenet_resnet50.toml --set batch.global=1 --steps 100",
      run_bench_infer);
  add("layers", "time, arithmetic and memory traffic of each layer and pass on rank 0",
      "annulus bench layers configs/imagenet_resnet50.toml --set data.synthetic=true --set "
      "batch.global=16 --steps 5",
      run_bench_layers);
  add_allreduce(*bench, code);
  add_bench_data(*bench, code);
}

void add_data(CLI::App& root, int& code) {
  CLI::App* data = root.add_subcommand("data", "data sets");
  data->require_subcommand(1);

  auto [import_app, import] = command<DataImportOptions>(
      *data, "import", "turn a published data set into one HDF5 file",
      "annulus data import idx mnist/ data/mnist.h5", run_data_import, code);
  import_app->add_option("kind", import->kind, "idx: the format of MNIST and its kin")->required();
  import_app->add_option("source", import->source, "directory of the published files")->required();
  import_app->add_option("destination", import->destination, "HDF5 file to write")->required();

  auto [info_app, info] =
      command<DataFileOptions>(*data, "info", "data sets of an HDF5 file",
                               "annulus data info data/digits.h5", run_data_info, code);
  info_app->add_option("file", info->file, "HDF5 file")->required();
  add_json(info_app, &info->json);

  auto [verify_app, verify] =
      command<DataFileOptions>(*data, "verify", "read a whole file and check what it holds",
                               "annulus data verify data/digits.h5", run_data_verify, code);
  verify_app->add_option("file", verify->file, "HDF5 file")->required();
  add_json(verify_app, &verify->json);

  auto [synth_app, synth] = command<DataSynthOptions>(
      *data, "synth", "write a file of random images and labels",
      "annulus data synth samples=1000,shape=3x32x32,classes=10 random.h5", run_data_synth, code);
  synth_app
      ->add_option("spec", synth->spec,
                   "samples=N,shape=CxHxW[,classes=K][,test=N][,seed=S][,type=u8|f32|f64]"
                   "[,storage=contiguous|chunked|compressed][,chunk=R]")
      ->required();
  synth_app->add_option("destination", synth->destination, "HDF5 file to write")->required();
}

void add_checkpoint(CLI::App& root, int& code) {
  CLI::App* checkpoint = root.add_subcommand("checkpoint", "checkpoints");
  checkpoint->require_subcommand(1);

  auto [info_app, info] = command<CheckpointOptions>(
      *checkpoint, "info", "what a checkpoint holds",
      "annulus checkpoint info runs/digits/checkpoints/step_0000000690", run_checkpoint_info, code);
  info_app->add_option("checkpoint", info->path, "checkpoint directory")->required();
  add_json(info_app, &info->json);

  auto [verify_app, verify] = command<CheckpointOptions>(
      *checkpoint, "verify", "read it all and check every checksum",
      "annulus checkpoint verify runs/digits/checkpoints/step_0000000690", run_checkpoint_verify,
      code);
  verify_app->add_option("checkpoint", verify->path, "checkpoint directory")->required();
  add_json(verify_app, &verify->json);

  auto [diff_app, diff] = command<CheckpointOptions>(
      *checkpoint, "diff", "bit-identical, or the first tensor that differs (exit 4)",
      "annulus checkpoint diff A/checkpoints/step_0000000100 B/checkpoints/step_0000000100",
      run_checkpoint_diff, code);
  diff_app->add_option("a", diff->path, "checkpoint directory")->required();
  diff_app->add_option("b", diff->other, "checkpoint directory")->required();
  add_json(diff_app, &diff->json);
}

// CLI11 only says that a command is lacking; a word that is none is to be named. Error (usage).
void check_commands(const CLI::App& root, std::span<char* const> words) {
  const CLI::App* app = &root;
  for (const std::string_view word : words) {
    std::vector<std::string> known;
    for (const CLI::App* sub : app->get_subcommands({})) known.push_back(sub->get_name());
    if (known.empty() || word.starts_with('-')) return;
    const auto found = std::find(known.begin(), known.end(), word);
    if (found == known.end()) {
      const std::string near = nearest(word, known);
      fail(ErrorKind::usage, "'{}' is no command of '{}'; {}", printable(word), app->get_name(),
           near.empty() ? fmt::format("there are {}", fmt::join(known, ", "))
                        : fmt::format("did you mean '{}'?", near));
    }
    app = app->get_subcommand(*found);
  }
}

// CLI11's own codes become ours: 0 for help and version, 2 for everything that it refuses. Under a
// launcher all ranks have the same command line, so one of them answers.
int answer(const CLI::App& app, const CLI::ParseError& error) {
  if (launcher_rank() > 0) return error.get_exit_code() == 0 ? 0 : 2;
  if (error.get_exit_code() == 0) return app.exit(error);
  std::fputs(
      fmt::format("annulus: {}\nRun 'annulus --help' or 'annulus COMMAND --help'.\n", error.what())
          .c_str(),
      stderr);
  return 2;
}

}  // namespace

int run_command_line(int argc, char** argv) {
  // A file that grows beyond the allowed size is an error like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);  // NOLINT(cert-err33-c): SIG_ERR is for wrong numbers only
  if (const char* lacking = missing_instructions()) {
    print_error(
        Error(ErrorKind::resource, fmt::format("this processor has no {}, which this build needs; "
                                               "build with -DANNULUS_MARCH=x86-64",
                                               lacking)));
    return static_cast<int>(ErrorKind::resource);
  }
  CLI::App app("annulus: trains deep networks data-parallel, started by mpirun from a TOML file.",
               "annulus");
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  app.footer(
      "Documentation: README.md and docs/. Exit codes: 0 done, 1 a bug, 2 usage or config, 3 "
      "data,\n"
      "4 checkpoint or output, 5 resources, 6 numeric, 7 peer lost, 75 stopped after saving.");
  int code = 0;
  add_train(app, code);
  add_eval(app, code);
  add_infer(app, code);
  add_check(app, code);
  add_bench(app, code);
  add_data(app, code);
  add_checkpoint(app, code);
  CLI::App* keys =
      app.add_subcommand("keys", "all keys of a config with type, default and meaning");
  keys->footer("Example:\n  annulus keys | grep optimizer");
  keys->callback([&code] { code = run_keys(); });

  try {
    check_commands(app, std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return answer(app, error);
  } catch (const Error& error) {
    if (launcher_rank() <= 0) print_error(error);
    return error.exit_code();
  } catch (const std::exception& error) {
    print_error(Error(ErrorKind::bug, error.what()));
    return static_cast<int>(ErrorKind::bug);
  }
  return code;
}

}  // namespace annulus
