// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "comm/gradient_reducer.h"
#include "core/error.h"

namespace annulus {
namespace {

constexpr std::int64_t element = sizeof(float);

// The start of the last bucket: as many of the last tensors as fit in `last_bytes` with the tail,
// and at least one, unless that has a bucket of its own and there is a tail.
std::int64_t start_of_last(std::span<const std::int64_t> tensors, std::int64_t tail,
                           std::int64_t bucket_bytes, std::int64_t last_bytes, std::int64_t end) {
  std::int64_t begin = end - tail;
  for (std::size_t i = tensors.size(); i-- > 0;) {
    const bool fits = (end - begin + tensors[i]) * element <= last_bytes;
    const bool alone = tail > 0 && tensors[i] * element >= bucket_bytes;
    if (!fits && (begin < end - tail || alone)) break;
    begin -= tensors[i];
    if (!fits) break;
  }
  return begin;
}

}  // namespace

std::vector<Bucket> plan_buckets(std::span<const std::int64_t> tensors, std::int64_t tail,
                                 std::int64_t bucket_bytes, std::int64_t last_bytes) {
  require(tail >= 0 && bucket_bytes > 0 && last_bytes > 0, ErrorKind::bug,
          "buckets of {} and {} bytes with {} elements at the end", bucket_bytes, last_bytes, tail);
  std::int64_t end = tail;
  for (const std::int64_t tensor : tensors) {
    require(tensor >= 0, ErrorKind::bug, "a gradient of {} elements", tensor);
    end += tensor;
  }
  const std::int64_t last = start_of_last(tensors, tail, bucket_bytes, last_bytes, end);
  std::vector<Bucket> buckets;
  Bucket bucket;
  for (const std::int64_t tensor : tensors) {
    if (bucket.end >= last) break;
    const bool overflows = (bucket.count() + tensor) * element > bucket_bytes;
    if (overflows && bucket.count() > 0) {
      buckets.push_back(bucket);
      bucket.begin = bucket.end;
    }
    bucket.end += tensor;
    if (bucket.count() * element >= bucket_bytes) {
      buckets.push_back(bucket);
      bucket.begin = bucket.end;
    }
  }
  if (bucket.count() > 0) buckets.push_back(bucket);
  if (last < end) buckets.push_back({last, end});
  return buckets;
}

}  // namespace annulus
