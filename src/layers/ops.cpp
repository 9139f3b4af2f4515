// SPDX-License-Identifier: Apache-2.0
#include "layers/ops.h"

namespace annulus {

std::unique_ptr<Backend> make_backend(DeviceContext& device) {
  switch (device.kind()) {
    case DeviceKind::cpu:
      return make_cpu_backend(device);
    case DeviceKind::cuda:
      return make_cuda_backend(device);
  }
  return nullptr;
}

LossSums& LossSums::operator+=(const LossSums& other) {
  loss += other.loss;
  counted += other.counted;
  for (int k = 0; k < 2; ++k) correct[k] += other.correct[k];
  absolute_error += other.absolute_error;
  return *this;
}

}  // namespace annulus
