// SPDX-License-Identifier: Apache-2.0
// Stands in for core/cuda/*.cpp in a build without CUDA.
#include "core/device.h"
#include "core/error.h"
#include "core/update_ops.h"

namespace annulus {

namespace {

[[noreturn]] void refuse() {
  std::string reason;
  cuda_available(reason);
  throw Error(ErrorKind::resource, "device 'cuda': " + reason);
}

}  // namespace

std::unique_ptr<DeviceContext> make_cuda_device(const Placement&) {
  refuse();
}

std::unique_ptr<UpdateOps> make_cuda_update_ops(DeviceContext&) {
  refuse();
}

bool cuda_available(std::string& reason) {
  reason = "this build has no CUDA backend (ANNULUS_CUDA=OFF)";
  return false;
}

}  // namespace annulus
