// SPDX-License-Identifier: Apache-2.0
// Stands in for core/cuda/device.cpp in a build without CUDA.
#include "core/device.h"
#include "core/error.h"

namespace annulus {

std::unique_ptr<DeviceContext> make_cuda_device(const Placement&) {
  std::string reason;
  cuda_available(reason);
  throw Error(ErrorKind::resource, "device 'cuda': " + reason);
}

bool cuda_available(std::string& reason) {
  reason = "this build has no CUDA backend (ANNULUS_CUDA=OFF)";
  return false;
}

}  // namespace annulus
