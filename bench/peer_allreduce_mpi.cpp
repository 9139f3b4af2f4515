// SPDX-License-Identifier: Apache-2.0
// MPI_Allreduce of 32-bit floats as the MPI library does it by itself, whole or in chunks, on
// buffers that are reused: one JSON line for each size and chunk. Times are means over a loop, of
// the slowest rank.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <mpi.h>

namespace {

struct Case {
  long bytes = 0;
  long chunk_bytes = 0;  // 0: the whole message in one call
  bool in_place = true;
};

long number(std::string_view text) {
  long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    throw std::runtime_error("not a number from 0 on: " + std::string(text));
  }
  return value;
}

std::vector<long> numbers(std::string_view text) {
  std::vector<long> values;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    values.push_back(number(text.substr(0, comma)));
    if (comma == text.size()) return values;
    text.remove_prefix(comma + 1);
  }
}

class Message {
 public:
  explicit Message(const Case& what)
      : case_(what),
        sent_(static_cast<std::size_t>(what.bytes) / sizeof(float)),
        received_(what.in_place ? 0 : sent_.size()) {}

  void set(float value) { std::fill(sent_.begin(), sent_.end(), value); }

  void reduce() {
    const std::size_t whole = sent_.size();
    const std::size_t chunk = case_.chunk_bytes == 0
                                  ? whole
                                  : static_cast<std::size_t>(case_.chunk_bytes) / sizeof(float);
    for (std::size_t at = 0; at < whole; at += chunk) {
      const int count = static_cast<int>(std::min(chunk, whole - at));
      const void* const from = case_.in_place ? MPI_IN_PLACE : &sent_[at];
      MPI_Allreduce(from, &result()[at], count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
  }

  long wrong(float expected) {
    return std::count_if(result().begin(), result().end(),
                         [&](float value) { return value != expected; });
  }

 private:
  std::vector<float>& result() { return case_.in_place ? sent_ : received_; }

  Case case_;
  std::vector<float> sent_;
  std::vector<float> received_;
};

double time_of(Message& message, long repeats) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (long k = 0; k < repeats; ++k) message.reduce();
  double mine = (MPI_Wtime() - start) / static_cast<double>(repeats);
  double slowest = 0;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

void measure(const Case& what, double seconds) {
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Message message(what);
  message.set(static_cast<float>(rank + 1));
  message.reduce();
  const int sum_of_ranks = ranks * (ranks + 1) / 2;
  const long wrong = message.wrong(static_cast<float>(sum_of_ranks));
  message.set(0);  // so that sums of sums stay finite
  const double once = time_of(message, 3);
  const long repeats = std::clamp(static_cast<long>(seconds / once), 5L, 2'000'000L);
  const double time_s = time_of(message, repeats);
  if (rank == 0) {
    std::printf(
        "{\"bytes\":%ld,\"chunk_bytes\":%ld,\"in_place\":%s,\"time_s\":%.9f,\"wrong\":%ld}\n",
        what.bytes, what.chunk_bytes, what.in_place ? "true" : "false", time_s, wrong);
  }
}

void run(std::span<char*> arguments) {
  if (arguments.size() != 4) {
    throw std::runtime_error("arguments: BYTES,... CHUNK_BYTES,... IN_PLACE,... MILLISECONDS");
  }
  for (const long bytes : numbers(arguments[0])) {
    for (const long chunk : numbers(arguments[1])) {
      for (const long in_place : numbers(arguments[2])) {
        measure({bytes, chunk, in_place != 0}, static_cast<double>(number(arguments[3])) / 1e3);
      }
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  try {
    run(std::span(arguments + 1, static_cast<std::size_t>(count > 0 ? count - 1 : 0)));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "peer_allreduce_mpi: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
