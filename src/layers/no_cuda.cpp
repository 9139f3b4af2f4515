// SPDX-License-Identifier: Apache-2.0
// Stands in for layers/cuda/backend.cpp in a build without CUDA.
#include "core/error.h"
#include "layers/ops.h"

namespace annulus {

std::unique_ptr<Backend> make_cuda_backend(DeviceContext&, BackendOptions) {
  std::string reason;
  cuda_available(reason);
  throw Error(ErrorKind::resource, "device 'cuda': " + reason);
}

}  // namespace annulus
