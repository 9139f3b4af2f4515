// SPDX-License-Identifier: Apache-2.0
#include "core/update_ops.h"

namespace annulus {

std::unique_ptr<UpdateOps> make_update_ops(DeviceContext& device) {
  switch (device.kind()) {
    case DeviceKind::cpu:
      return make_cpu_update_ops();
    case DeviceKind::cuda:
      return make_cuda_update_ops(device);
  }
  return nullptr;
}

}  // namespace annulus
