// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "core/schema.h"

namespace annulus {

// [comm]: how ranks talk.
struct CommSpec {
  std::string backend = "auto";    // auto, mpi (later nccl)
  std::string algorithm = "auto";  // of all-reduce across nodes
  double timeout_s = 300;          // 0: never
  double bucket_mb = 25;           // MiB of gradients in a bucket
  double last_bucket_mb = 1;       // MiB in the last one
};

Schema describe(CommSpec& spec);

}  // namespace annulus
