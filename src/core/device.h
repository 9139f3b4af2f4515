// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/buffer.h"

namespace annulus {

struct Placement;

enum class DeviceKind : std::uint8_t { cpu, cuda };

const char* name(DeviceKind kind);  // "cpu", "cuda"

// The device that one rank computes on: its memory and the order of its work. One object a rank;
// every folder with a device half gets it by reference. Copies and fills are queued in the order of
// the calls; on the CPU they are done at return.
class DeviceContext {
 public:
  virtual ~DeviceContext() = default;

  virtual DeviceKind kind() const = 0;
  virtual std::string description() const = 0;  // "cpu, 2 threads", "NVIDIA H200 0000:12:00.0"

  // Memory of this device, contents undefined. Error (resource) with wanted and free bytes.
  virtual Buffer allocate(std::size_t bytes) = 0;
  // Host memory that copies from and to the device run at full speed with.
  virtual Buffer allocate_staging(std::size_t bytes) = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual void zero(void* memory, std::size_t bytes) = 0;
  // Returns when all queued work is done; errors of that work are thrown here.
  virtual void synchronize() = 0;
};

// The device named by `kind`, as placed. `core/cpu/device.cpp`, and `core/cuda/device.cpp` or
// `core/no_cuda.cpp`, which throws (resource).
std::unique_ptr<DeviceContext> make_device(DeviceKind kind, const Placement& placement);
std::unique_ptr<DeviceContext> make_cpu_device(const Placement& placement);
std::unique_ptr<DeviceContext> make_cuda_device(const Placement& placement);
// Whether make_cuda_device can succeed; `reason` says why not. Never throws.
bool cuda_available(std::string& reason);

}  // namespace annulus
