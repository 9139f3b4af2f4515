// SPDX-License-Identifier: Apache-2.0
#include "layers/ops.h"

namespace annulus {

std::unique_ptr<Backend> make_backend(DeviceContext& device, BackendOptions options) {
  switch (device.kind()) {
    case DeviceKind::cpu:
      return make_cpu_backend(device, options);
    case DeviceKind::cuda:
      return make_cuda_backend(device, options);
  }
  return nullptr;
}

}  // namespace annulus
