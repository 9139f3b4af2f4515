// SPDX-License-Identifier: Apache-2.0
#include "core/device.h"

#include <cstring>

#include "core/error.h"
#include "core/placement.h"

namespace annulus {
namespace {

class CpuDevice final : public DeviceContext {
 public:
  explicit CpuDevice(int threads) : threads_(threads) {}

  DeviceKind kind() const override { return DeviceKind::cpu; }
  std::string description() const override {
    return fmt::format("cpu, {} thread{}", threads_, threads_ == 1 ? "" : "s");
  }
  Buffer allocate(std::size_t bytes) override { return Buffer::host(bytes); }
  Buffer allocate_staging(std::size_t bytes) override { return Buffer::host(bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void zero(void* memory, std::size_t bytes) override { std::memset(memory, 0, bytes); }
  void synchronize() override {}

 private:
  int threads_;
};

}  // namespace

std::unique_ptr<DeviceContext> make_cpu_device(const Placement& placement) {
  return std::make_unique<CpuDevice>(placement.threads);
}

}  // namespace annulus
