// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "comm/job.h"
#include "core/error.h"

namespace annulus {
namespace {

struct Layout {
  int ranks;
  int nodes;
};

const std::vector<Layout> layouts{{1, 1}, {2, 1}, {2, 2}, {3, 1}, {3, 2}, {4, 2},
                                  {5, 3}, {6, 3}, {7, 1}, {8, 4}, {64, 4}};

// Calls body on all ranks of every layout.
void on_all_layouts(const std::function<void(Communicator&)>& body) {
  for (const Layout& layout : layouts) {
    CAPTURE(layout.ranks);
    CAPTURE(layout.nodes);
    run_as_threads(layout.ranks, layout.nodes, body);
  }
}

template <class T>
std::vector<T> ramp(std::size_t count, int rank) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<T>(static_cast<std::size_t>(rank + 1) * (i % 7 + 1));
  }
  return values;
}

// The sum of 1 to size, times i % 7 + 1.
template <class T>
bool is_sum_of_ramps(const std::vector<T>& values, int size) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto ranks = static_cast<std::size_t>(size) * static_cast<std::size_t>(size + 1) / 2;
    if (values[i] != static_cast<T>(ranks * (i % 7 + 1))) return false;
  }
  return true;
}

template <class T>
void check_sums(Communicator& comm) {
  for (const std::size_t count : {0, 1, 2, 3, 63, 1000}) {
    auto values = ramp<T>(count, comm.rank());
    comm.all_reduce(std::span(values), ReduceOp::sum);
    CHECK(is_sum_of_ramps(values, comm.size()));
  }
}

TEST_CASE("all_reduce adds values of every rank, of each type and any length") {
  on_all_layouts([](Communicator& comm) {
    check_sums<float>(comm);
    check_sums<double>(comm);
    check_sums<std::int32_t>(comm);
    check_sums<std::int64_t>(comm);
  });
}

TEST_CASE("all_reduce finds the least and the greatest value") {
  on_all_layouts([](Communicator& comm) {
    const int rank = comm.rank();
    const int last = comm.size() - 1;
    std::vector<std::int64_t> numbers{rank, -rank, std::int64_t{1} << 40};
    comm.all_reduce(std::span(numbers), ReduceOp::min);
    CHECK(numbers == std::vector<std::int64_t>{0, -last, std::int64_t{1} << 40});
    std::vector<std::uint8_t> bytes{static_cast<std::uint8_t>(rank), 200};
    comm.all_reduce(std::span(bytes), ReduceOp::max);
    CHECK(bytes == std::vector<std::uint8_t>{static_cast<std::uint8_t>(last), 200});
    std::vector<double> halves{rank / 2.0, rank == last ? std::nan("") : 1.0};
    comm.all_reduce(std::span(halves), ReduceOp::max);
    CHECK(halves[0] == last / 2.0);
    CHECK(std::isnan(halves[1]));
  });
}

// ((x0 + x1) + (x2 + x3)) + (x4 + x5), with a rounding in every addition.
TEST_CASE("sums follow the tree over ranks, not their arrival") {
  const std::vector<float> x{1.0F, 3e-8F, 5e-8F, -1.0F, 7e-8F, 2e-8F};
  const float expected = ((x[0] + x[1]) + (x[2] + x[3])) + (x[4] + x[5]);
  REQUIRE(expected != ((((x[0] + x[1]) + x[2]) + x[3]) + x[4]) + x[5]);
  for (const int nodes : {1, 2, 3, 6}) {
    run_as_threads(6, nodes, [&](Communicator& comm) {
      float value = x[static_cast<std::size_t>(comm.rank())];
      comm.all_reduce(std::span(&value, 1), ReduceOp::sum);
      CHECK(value == expected);
    });
  }
}

TEST_CASE("reduce_scatter gives each rank the sum of its slice") {
  on_all_layouts([](Communicator& comm) {
    const auto size = static_cast<std::size_t>(comm.size());
    std::vector<float> data(3 * size);
    for (std::size_t i = 0; i < data.size(); ++i)
      data[i] = static_cast<float>(i * (comm.rank() + 1));
    std::vector<float> slice(3);
    comm.reduce_scatter(std::span(data), std::span(slice));
    for (std::size_t i = 0; i < 3; ++i) {
      const std::size_t element = static_cast<std::size_t>(comm.rank()) * 3 + i;
      const std::size_t sum = element * size * (size + 1) / 2;
      CHECK(slice[i] == static_cast<float>(sum));
    }
  });
}

TEST_CASE("all_gather keeps the order of ranks") {
  on_all_layouts([](Communicator& comm) {
    std::vector<std::int32_t> mine{comm.rank(), 10 * comm.rank()};
    std::vector<std::int32_t> all(2 * static_cast<std::size_t>(comm.size()));
    comm.all_gather(std::span(mine), std::span(all));
    for (std::size_t rank = 0; rank < all.size() / 2; ++rank) {
      CHECK(all[2 * rank] == static_cast<int>(rank));
      CHECK(all[2 * rank + 1] == static_cast<int>(10 * rank));
    }
  });
}

TEST_CASE("broadcast from each rank") {
  on_all_layouts([](Communicator& comm) {
    for (int root = 0; root < comm.size(); root += 1 + comm.size() / 8) {
      std::vector<double> values(5, comm.rank());
      comm.broadcast(std::span(values), root);
      CHECK(values == std::vector<double>(5, root));
    }
  });
}

TEST_CASE("no rank leaves a barrier before the last has come") {
  for (const Layout& layout : layouts) {
    std::atomic<int> arrived{0};
    run_as_threads(layout.ranks, layout.nodes, [&](Communicator& comm) {
      for (int round = 1; round <= 20; ++round) {
        ++arrived;
        comm.barrier();
        CHECK(arrived.load() >= round * comm.size());
        comm.barrier();
      }
    });
  }
}

TEST_CASE("ranks are numbered by node") {
  run_as_threads(5, 2, [](Communicator& comm) {
    const std::vector<int> nodes{0, 0, 1, 1, 1};
    const std::vector<int> locals{0, 1, 0, 1, 2};
    const auto rank = static_cast<std::size_t>(comm.rank());
    CHECK(comm.size() == 5);
    CHECK(comm.node() == nodes[rank]);
    CHECK(comm.local_rank() == locals[rank]);
    CHECK(comm.local_size() == (comm.node() == 0 ? 2 : 3));
    CHECK(comm.ranks_by_node() == std::vector<int>{2, 3});
    CHECK(comm.hosts().size() == 2);
    CHECK_FALSE(comm.hosts()[0].empty());
  });
}

TEST_CASE("split makes communicators of the ranks with one colour, by key") {
  run_as_threads(6, 2, [](Communicator& comm) {
    const int rank = comm.rank();
    const auto part = comm.split(rank % 2, -rank);
    CHECK(part->size() == 3);
    CHECK(part->rank() == (5 - rank) / 2);
    std::int64_t sum = rank;
    part->all_reduce(std::span(&sum, 1), ReduceOp::sum);
    CHECK(sum == (rank % 2 == 0 ? 6 : 9));
    const auto alone = part->split(rank, 0);
    CHECK(alone->size() == 1);
    alone->barrier();
    comm.barrier();
  });
}

TEST_CASE("a rank that calls something else is a bug that all ranks see, with both calls") {
  for (const int nodes : {1, 2, 3}) {
    run_as_threads(3, nodes, [](Communicator& comm) {
      std::vector<float> values(comm.rank() == 2 ? 5 : 4);
      const auto fault = [&] { comm.all_reduce(std::span(values), ReduceOp::sum); };
      try {
        fault();
        FAIL("no error");
      } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::bug);
        CHECK(error.expected().find("16 bytes of f32 by rank 0") != std::string::npos);
        CHECK(error.found().find("20 bytes of f32 by rank 2") != std::string::npos);
        CHECK(error.is_agreed());
        CHECK(error.rank() == 0);
      }
      comm.barrier();  // all are still together
      CHECK_THROWS_AS(comm.rank() == 1 ? comm.barrier() : fault(), Error);
    });
  }
}

TEST_CASE("tensors that ranks cannot exchange are refused, on one rank too") {
  for (const int ranks : {1, 2}) {
    run_as_threads(ranks, 1, [](Communicator& comm) {
      std::vector<std::uint16_t> halves(2);
      const TensorView view(halves.data(), {2}, DType::f16);
      CHECK_THROWS_AS(comm.all_reduce(view, ReduceOp::sum), Error);
      CHECK_THROWS_AS(comm.broadcast(view, 0), Error);
      std::vector<std::uint8_t> bytes(2);
      CHECK_THROWS_AS(comm.all_reduce(std::span(bytes), ReduceOp::sum), Error);
      CHECK_THROWS_AS(comm.broadcast(std::span(bytes), comm.size()), Error);
      CHECK_THROWS_AS(comm.all_gather(std::span(bytes), std::span(bytes).first(1)), Error);
    });
  }
}

TEST_CASE("an exception of one rank ends the job and is the one that is thrown") {
  const auto run = [] {
    run_as_threads(4, 2, [](Communicator& comm) {
      if (comm.rank() == 2) fail(ErrorKind::data, "sample {} is bad", 7);
      comm.barrier();
    });
  };
  CHECK_THROWS_WITH_AS(run(), "sample 7 is bad", Error);
}

TEST_CASE("abort ends all ranks, and a failure never becomes success") {
  for (const std::pair<int, int>& codes : {std::pair{7, 7}, {256, 1}, {0, 1}, {-1, 1}}) {
    int seen = 0;
    try {
      run_as_threads(3, 1, [&](Communicator& comm) {
        if (comm.rank() == 1) comm.abort(codes.first);
        comm.barrier();
      });
    } catch (const Error& error) {
      seen = error.exit_code();
    }
    CHECK(seen == codes.second);
  }
}

TEST_CASE("of ranks that fail apart, one a node is the first") {
  std::atomic<int> firsts{0};
  run_as_threads(5, 2, [&](Communicator& comm) {
    if (comm.first_to_fail()) ++firsts;
    CHECK_FALSE(comm.first_to_fail());
  });
  CHECK(firsts == 2);
}

TEST_CASE("an error of one rank's own thread is not taken for one that all share") {
  run_as_threads(2, 1, [](Communicator& comm) {
    comm.set_timeout(0.05);
    if (comm.rank() == 0) return;
    try {
      comm.barrier();
      FAIL("nobody else came");
    } catch (const Error& error) {
      CHECK(error.rank() == 1);
      CHECK_FALSE(error.is_agreed());
    }
  });
}

TEST_CASE("bytes between hosts are those that leave a node") {
  std::atomic<std::int64_t> total{0};
  run_as_threads(4, 1, [](Communicator& comm) {
    auto values = ramp<float>(1000, comm.rank());
    comm.all_reduce(std::span(values), ReduceOp::sum);
    CHECK(comm.bytes_between_hosts() == 0);
  });
  run_as_threads(2, 2, [&](Communicator& comm) {
    comm.barrier();
    const std::int64_t before = comm.bytes_between_hosts();
    comm.barrier();
    const std::int64_t barrier = comm.bytes_between_hosts() - before;
    auto values = ramp<float>(1000, comm.rank());
    comm.all_reduce(std::span(values), ReduceOp::sum);
    total += comm.bytes_between_hosts() - before - 2 * barrier;
  });
  CHECK(total == 2 * 4000);  // each sends a half, then a half
}

}  // namespace
}  // namespace annulus
