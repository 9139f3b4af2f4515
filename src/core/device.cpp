// SPDX-License-Identifier: Apache-2.0
#include "core/device.h"

namespace annulus {

const char* name(DeviceKind kind) {
  return kind == DeviceKind::cuda ? "cuda" : "cpu";
}

std::unique_ptr<DeviceContext> make_device(DeviceKind kind, const Placement& placement) {
  switch (kind) {
    case DeviceKind::cpu:
      return make_cpu_device(placement);
    case DeviceKind::cuda:
      return make_cuda_device(placement);
  }
  return nullptr;
}

}  // namespace annulus
