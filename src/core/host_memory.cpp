// SPDX-License-Identifier: Apache-2.0
#include "core/host_memory.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <sys/resource.h>
#include <unistd.h>

namespace annulus {
namespace {

using Bytes = std::optional<std::int64_t>;

// The number behind a word at the start of a line: "MemAvailable:   123 kB", "inactive_file 5".
Bytes field(const std::string& path, const std::string& word) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string first;
    std::int64_t number = 0;
    if (words >> first >> number && first == word) return number;
  }
  return std::nullopt;
}

// A file of one number; nothing for "max", which is no limit.
Bytes number_in(const std::string& path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

Bytes available_on_host(const std::string& root) {
  constexpr std::int64_t kibibyte = 1024;
  const Bytes available = field(root + "/proc/meminfo", "MemAvailable:");
  if (!available) return std::nullopt;
  const Bytes swap = field(root + "/proc/meminfo", "SwapFree:");
  return (*available + swap.value_or(0)) * kibibyte;
}

struct GroupFiles {
  const char* limit;
  const char* usage;
  const char* cache;  // in memory.stat: pages that the kernel gives up first
};

constexpr GroupFiles version_1{"/memory.limit_in_bytes", "/memory.usage_in_bytes",
                               "total_inactive_file"};
constexpr GroupFiles version_2{"/memory.max", "/memory.current", "inactive_file"};

Bytes left_in(const std::string& group, const GroupFiles& files) {
  const Bytes limit = number_in(group + files.limit);
  const Bytes usage = number_in(group + files.usage);
  if (!limit || !usage) return std::nullopt;
  const Bytes cache = field(group + "/memory.stat", files.cache);
  return std::max<std::int64_t>(0, *limit - *usage + cache.value_or(0));
}

Bytes smaller(Bytes a, Bytes b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

// The least that this process's group or a group around it has left. A container often sees its own
// group as the root, whatever /proc says its path is.
Bytes left_in_groups(const std::string& mount, std::string group, const GroupFiles& files) {
  Bytes left = left_in(mount, files);
  while (!group.empty() && group != "/") {
    left = smaller(left, left_in(mount + group, files));
    group.resize(group.find_last_of('/'));
  }
  return left;
}

Bytes available_in_groups(const std::string& root) {
  std::ifstream file(root + "/proc/self/cgroup");
  std::string line;
  Bytes left;
  while (std::getline(file, line)) {  // "0::/path" or "4:memory:/path"
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (!group.empty() && group[0] != '/') continue;
    if (controllers.empty()) {
      left = smaller(left, left_in_groups(root + "/sys/fs/cgroup", group, version_2));
    } else if (controllers == "memory") {
      left = smaller(left, left_in_groups(root + "/sys/fs/cgroup/memory", group, version_1));
    }
  }
  return left;
}

}  // namespace

Bytes available_memory() {
  return available_memory("");
}

Bytes available_memory(const std::string& root) {
  return smaller(available_on_host(root), available_in_groups(root));
}

std::int64_t resident_memory() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t total = 0;
  std::int64_t resident = 0;
  statm >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

std::int64_t peak_resident_memory() {
  constexpr std::int64_t kibibyte = 1024;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * kibibyte;
}

}  // namespace annulus
