// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>

#include "core/host_memory.h"
#include "support/temp_dir.h"

using annulus::available_memory;
using annulus::resident_memory;
using annulus::test::TempDir;

namespace {

void put(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

void put_host(const TempDir& root) {
  put(root / "proc/meminfo", "MemTotal: 900 kB\nMemAvailable:    800 kB\nSwapFree:  200 kB\n");
}

}  // namespace

TEST_CASE("available memory is what the kernel says, with free swap") {
  const TempDir root;
  CHECK(!available_memory(root.path()));
  put(root / "proc/meminfo", "MemTotal: 900 kB\nMemAvailable:    800 kB\n");
  CHECK(available_memory(root.path()) == 800 * 1024);
  put_host(root);
  CHECK(available_memory(root.path()) == 1000 * 1024);
}

TEST_CASE("a control group of version 2, or one around it, leaves less") {
  const TempDir root;
  put_host(root);
  put(root / "proc/self/cgroup", "0::/job.slice/step\n");
  const std::string group = root / "sys/fs/cgroup/job.slice/step";
  put(group + "/memory.max", "max\n");
  put(group + "/memory.current", "300000\n");
  CHECK(available_memory(root.path()) == 1000 * 1024);
  put(group + "/memory.max", "500000\n");
  CHECK(available_memory(root.path()) == 200000);
  put(group + "/memory.stat", "anon 1\ninactive_file 50000\n");
  CHECK(available_memory(root.path()) == 250000);
  put(root / "sys/fs/cgroup/job.slice/memory.max", "400000\n");
  put(root / "sys/fs/cgroup/job.slice/memory.current", "390000\n");
  CHECK(available_memory(root.path()) == 10000);
  put(root / "sys/fs/cgroup/job.slice/memory.current", "500000\n");
  CHECK(available_memory(root.path()) == 0);
}

TEST_CASE("a control group of version 1 leaves less") {
  const TempDir root;
  put_host(root);
  put(root / "proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/slurm/job\n0::/\n");
  const std::string group = root / "sys/fs/cgroup/memory/slurm/job";
  put(group + "/memory.limit_in_bytes", "9223372036854771712\n");  // how version 1 writes no limit
  put(group + "/memory.usage_in_bytes", "300000\n");
  CHECK(available_memory(root.path()) == 1000 * 1024);
  put(group + "/memory.limit_in_bytes", "310000\n");
  CHECK(available_memory(root.path()) == 10000);
}

TEST_CASE("this process is resident, and this machine has memory") {
  CHECK(resident_memory() > 100'000);
  REQUIRE(available_memory());
  CHECK(*available_memory() > 1'000'000);
}
