// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/options.h"

namespace annulus {

// The commands, one file each. Each returns the exit code; what goes wrong is thrown as Error.
int run_train(const TrainOptions& options);
int run_eval(const EvalOptions& options);
int run_infer(const InferOptions& options);
int run_check(const CheckOptions& options);
int run_keys();  // all keys of the config, one a line
int run_bench_step(const BenchStepOptions& options);
int run_bench_data(const BenchDataOptions& options);
int run_bench_infer(const BenchStepOptions& options);
int run_bench_layers(const BenchStepOptions& options);
int run_bench_allreduce(const AllreduceOptions& options);
int run_data_import(const DataImportOptions& options);
int run_data_info(const DataFileOptions& options);
int run_data_verify(const DataFileOptions& options);
int run_data_synth(const DataSynthOptions& options);
int run_checkpoint_info(const CheckpointOptions& options);
int run_checkpoint_verify(const CheckpointOptions& options);
int run_checkpoint_diff(const CheckpointOptions& options);

}  // namespace annulus
