// SPDX-License-Identifier: Apache-2.0
#include "comm/comm_spec.h"

namespace annulus {
namespace {

// Of a bucket: below, its fixed cost is all there is; above, no machine holds it.
constexpr double smallest_mb = 0.001;
constexpr double largest_mb = 65536;

}  // namespace

Schema describe(CommSpec& spec) {
  Schema schema;
  schema
      .key("backend", &spec.backend,
           "how ranks exchange gradients; `auto` takes the fastest for the device")
      .one_of({"auto", "mpi"});
  schema
      .key("algorithm", &spec.algorithm,
           "how gradients are summed across nodes; `auto` chooses by the number of nodes, and "
           "keeps the order of additions")
      .one_of({"auto"});
  schema
      .key("timeout_s", &spec.timeout_s,
           "seconds after which a rank that does not answer is lost (exit code 7); 0: never")
      .at_least(0)
      .at_most(1e8);
  schema
      .key("bucket_mb", &spec.bucket_mb,
           "MiB of gradients that are summed in one go, while backward goes on")
      .at_least(smallest_mb)
      .at_most(largest_mb);
  schema
      .key("last_bucket_mb", &spec.last_bucket_mb,
           "MiB of gradients in the last bucket, which nothing is left to hide behind")
      .at_least(smallest_mb)
      .at_most(largest_mb);
  return schema;
}

}  // namespace annulus
