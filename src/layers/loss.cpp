// SPDX-License-Identifier: Apache-2.0
#include "layers/loss.h"

#include <algorithm>
#include <iterator>

namespace annulus {

LossSums& LossSums::operator+=(const LossSums& other) {
  loss += other.loss;
  counted += other.counted;
  correct[0] += other.correct[0];
  correct[1] += other.correct[1];
  absolute_error += other.absolute_error;
  return *this;
}

std::vector<std::int64_t> reported_top_k(const LossSpec& spec, std::int64_t classes) {
  if (spec.kind != "cross_entropy") return {};
  std::vector<std::int64_t> reported;
  std::copy_if(spec.top_k.begin(), spec.top_k.end(), std::back_inserter(reported),
               [&](std::int64_t k) { return k <= classes; });
  return reported;
}

std::unique_ptr<LossOp> make_loss(Backend& backend, const LossSpec& spec, std::int64_t classes,
                                  const ValueType& prediction) {
  if (spec.kind == "mean_squared_error") return backend.mean_squared_error(prediction);
  CrossEntropyDesc desc;
  desc.label_smoothing = spec.label_smoothing;
  desc.ignore_index = spec.ignore_index;
  const std::vector<std::int64_t> reported = reported_top_k(spec, classes);
  for (std::size_t i = 0; i < 2; ++i) desc.top_k[i] = i < reported.size() ? reported[i] : classes;
  return backend.cross_entropy(prediction, desc);
}

}  // namespace annulus
