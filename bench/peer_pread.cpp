// SPDX-License-Identifier: Apache-2.0
// Reads samples of a file with pread into one batch buffer, as fast as the kernel gives them: in
// order, a batch in one call; or shuffled, one call a sample.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace {

long number(std::string_view text) {
  long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    throw std::runtime_error("not a number from 0 on: " + std::string(text));
  }
  return value;
}

class File {
 public:
  explicit File(const char* path) : descriptor_(open(path, O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) throw std::runtime_error("cannot open " + std::string(path));
  }
  ~File() { close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void read(std::span<char> to, long offset) const {
    if (pread(descriptor_, to.data(), to.size(), offset) != static_cast<ssize_t>(to.size())) {
      throw std::runtime_error("short read at byte " + std::to_string(offset));
    }
  }

 private:
  int descriptor_;
};

struct Work {
  long offset, sample_bytes, samples, batch;
  bool shuffled;
};

class Reader {
 public:
  Reader(const File& file, const Work& work)
      : file_(file),
        work_(work),
        order_(static_cast<std::size_t>(work.samples)),
        memory_(static_cast<std::size_t>(work.batch * work.sample_bytes) + alignment),
        batch_(aligned(memory_)) {
    std::iota(order_.begin(), order_.end(), 0L);
  }

  // One pass over all whole batches; returns its bytes.
  long epoch() {
    if (work_.shuffled) std::shuffle(order_.begin(), order_.end(), random_);
    const long batches = work_.samples / work_.batch;
    for (long k = 0; k < batches; ++k) read_batch(k * work_.batch);
    return batches * work_.batch * work_.sample_bytes;
  }

 private:
  void read_batch(long first) {
    if (!work_.shuffled) {
      file_.read(batch_, work_.offset + first * work_.sample_bytes);
      return;
    }
    const auto bytes = static_cast<std::size_t>(work_.sample_bytes);
    for (std::size_t k = 0; k < static_cast<std::size_t>(work_.batch); ++k) {
      const long sample = order_[static_cast<std::size_t>(first) + k];
      file_.read(batch_.subspan(k * bytes, bytes), work_.offset + sample * work_.sample_bytes);
    }
  }

  // Some processors copy several times slower to an address a few bytes past that of the source
  // within its page, which is where malloc puts large buffers.
  static constexpr std::size_t alignment = 64;
  static std::span<char> aligned(std::vector<char>& memory) {
    const auto past = reinterpret_cast<std::uintptr_t>(memory.data()) % alignment;
    return std::span(memory).subspan(alignment - past, memory.size() - alignment);
  }

  const File& file_;
  Work work_;
  std::vector<long> order_;
  std::vector<char> memory_;
  std::span<char> batch_;
  std::mt19937 random_{1};
};

void run(std::span<char*> arguments) {
  if (arguments.size() != 7) {
    throw std::runtime_error(
        "arguments: FILE OFFSET SAMPLE_BYTES SAMPLES BATCH ordered|shuffled MILLISECONDS");
  }
  const File file(arguments[0]);
  const std::string_view order = arguments[5];
  const Work work{number(arguments[1]), number(arguments[2]), number(arguments[3]),
                  number(arguments[4]), order == "shuffled"};
  if (work.batch < 1 || work.batch > work.samples) throw std::runtime_error("less than one batch");
  Reader reader(file, work);
  reader.epoch();  // brings the file into the page cache
  const double limit_s = static_cast<double>(number(arguments[6])) / 1e3;
  const auto start = std::chrono::steady_clock::now();
  double wall_s = 0;
  long bytes = 0;
  do {
    bytes += reader.epoch();
    wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  } while (wall_s < limit_s);
  std::printf("{\"bytes_per_s\":%.1f}\n", static_cast<double>(bytes) / wall_s);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    run(std::span(arguments + 1, static_cast<std::size_t>(count > 0 ? count - 1 : 0)));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "peer_pread: %s\n", error.what());
    return 1;
  }
  return 0;
}
