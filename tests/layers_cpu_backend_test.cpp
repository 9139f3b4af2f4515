// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include <doctest/doctest.h>
#include <sys/wait.h>

#include "core/error.h"
#include "core/placement.h"
#include "layers/cpu_isa.h"
#include "support/library_allocations.h"
#include "support/op_harness.h"

namespace annulus::testing {
namespace {

OpRequest request_for(const ValueType& input, std::vector<int> parameters = {}) {
  OpRequest request;
  request.name = "layer";
  request.inputs = {input};
  request.input_gradient = {true};
  request.parameters = std::move(parameters);
  return request;
}

const Conv2dDesc wide_conv{32, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 1, true};

// All operations, as a network of one layer each would have them.
std::vector<OpCase> all_operations(cpu::Format format) {
  const Shape images{3, 16, 6, 6};
  const auto make = [&](auto f, std::vector<Shape> inputs, std::vector<Shape> parameters = {}) {
    OpCase op;
    op.make = f;
    op.inputs = std::move(inputs);
    op.parameters = std::move(parameters);
    op.format = format;
    randomize(op);
    return op;
  };
  const Pool2dDesc max{PoolKind::max, {3, 3}, {2, 2}, {1, 1, 1, 1}, {3, 3}, false};
  const Pool2dDesc average{PoolKind::average, {6, 6}, {1, 1}, {}, {1, 1}, false};
  std::vector<OpCase> cases = {
      make([](Backend& b, const OpRequest& r) { return b.conv2d(r, wide_conv); }, {images},
           {{32, 16, 3, 3}, {32}}),
      make(
          [](Backend& b, const OpRequest& r) {
            return b.linear(r, {12, true});
          },
          {images}, {{12, 576}, {12}}),
      make(
          [](Backend& b, const OpRequest& r) {
            return b.batch_norm(r, {1e-5, true, true});
          },
          {images, images}, {{16}, {16}}),
      make([=](Backend& b, const OpRequest& r) { return b.pool2d(r, max); }, {images}),
      make([=](Backend& b, const OpRequest& r) { return b.pool2d(r, average); }, {images}),
      make([](Backend& b, const OpRequest& r) { return b.relu(r); }, {images}),
      make([](Backend& b, const OpRequest& r) { return b.dropout(r, {0.5}); }, {images}),
      make([](Backend& b, const OpRequest& r) { return b.softmax(r); }, {images}),
      make([](Backend& b, const OpRequest& r) { return b.add(r); }, {images, images, images}),
      make([](Backend& b, const OpRequest& r) { return b.concat(r); }, {images, images}),
      make([](Backend& b, const OpRequest& r) { return b.flatten(r); }, {images}),
      make([](Backend& b, const OpRequest& r) { return b.to_plain(r); }, {images})};
  cases[2].statistics = 16;
  return cases;
}

}  // namespace

TEST_CASE("every operation gives the same bits on two threads each time, and close to one's") {
  for (auto format : {cpu::Format::plain, cpu::Format::blocked16}) {
    for (const OpCase& op : all_operations(format)) {
      const OpResult one = run(*cpu_backend(1), op);
      const OpResult two = run(*cpu_backend(2), op);
      CAPTURE(one.implementation);
      CHECK(same_bits(two, run(*cpu_backend(2), op)));
      CHECK(difference(one, two) < 1e-5);
      // Own code gives the same bits on any number.
      if (one.implementation == "own") CHECK(same_bits(one, two));
    }
  }
}

TEST_CASE("calls allocate nothing") {
  for (auto format : {cpu::Format::plain, cpu::Format::blocked16}) {
    for (const OpCase& op : all_operations(format)) {
      const auto backend = cpu_backend(2);
      const Allocations counts = allocations_of_second_run(*backend, op);
      CAPTURE(run(*backend, op).implementation);
      CHECK(counts.own == 0);
      CHECK(counts.library_largest <= 4096);
    }
  }
}

TEST_CASE("losses allocate nothing") {
  const auto backend = cpu_backend(2);
  const ValueType type = backend->plain({8, 10});
  const auto cross_entropy = backend->cross_entropy(type, {0.1, 255, {1, 5}});
  const auto squares = backend->mean_squared_error(type);
  const Values scores = random_values(80, 1);
  Values gradient(80);
  const std::vector<std::int32_t> labels(8, 3);
  std::vector<std::byte> workspace(std::max(cross_entropy->workspace(), squares->workspace()));
  reset_allocations();
  cross_entropy->run(scores.data(), labels.data(), 1, gradient.data(), workspace.data());
  squares->run(scores.data(), scores.data(), 1, gradient.data(), workspace.data());
  backend->accumulate(type, gradient.data(), scores.data());
  CHECK(allocations().own == 0);
}

TEST_CASE("weights are packed again when their version changes, and shared by equal ids") {
  const auto backend = cpu_backend();
  const ValueType input = backend->plain({2, 16, 6, 6});
  const auto first = backend->conv2d(request_for(input, {3, 4}), wide_conv);
  const std::size_t one = backend->bytes();
  CHECK(one > 0);  // 32 x 16 x 3 x 3 weights are never kept plain
  const auto shared = backend->conv2d(request_for(input, {3, 4}), wide_conv);
  CHECK(backend->bytes() == one);
  {
    const auto other = backend->conv2d(request_for(input, {5, 6}), wide_conv);
    CHECK(backend->bytes() == 2 * one);
  }
  CHECK(backend->bytes() == one);

  const Values x = random_values(2 * 16 * 36, 1);
  Values weight(32 * 16 * 9, 1);
  const Values bias(32, 0);
  const auto forward = [&](Op& op, std::int64_t version) {
    Values y(op.output().bytes() / sizeof(float));
    std::vector<std::byte> workspace(op.memory().forward_workspace);
    const float* const inputs[] = {x.data()};
    const float* const parameters[] = {weight.data(), bias.data()};
    op.forward({.inputs = inputs,
                .output = y.data(),
                .parameters = parameters,
                .running = {},
                .batch_sums = {},
                .saved = nullptr,
                .workspace = workspace.data(),
                .step = {0, {}, version}});
    return y[0];
  };
  const float before = forward(*first, 1);
  std::fill(weight.begin(), weight.end(), 2.0F);
  CHECK(forward(*first, 2) == doctest::Approx(2 * before));
  CHECK(forward(*shared, 2) == doctest::Approx(2 * before));
}

TEST_CASE("a chain of convolutions keeps the layout that the first has chosen") {
  const auto backend = cpu_backend(2);
  const auto layer = [&](const ValueType& input, std::int64_t out, std::int64_t kernel,
                         std::int64_t stride) {
    const std::int64_t padding = kernel / 2;
    const Conv2dDesc desc{
        out,  {kernel, kernel}, {stride, stride}, {1, 1}, {padding, padding, padding, padding}, 1,
        false};
    return backend->conv2d(request_for(input, {static_cast<int>(out + kernel)}), desc);
  };
  const auto first = layer(backend->plain({2, 3, 32, 32}), 64, 7, 2);
  CHECK(cpu::block_of(cpu::format_of(first->output())) > 0);
  const auto second = layer(first->output(), 64, 1, 1);
  const auto third = layer(second->output(), 64, 3, 1);
  const auto fourth = layer(third->output(), 256, 1, 2);
  CHECK(cpu::format_of(second->output()) == cpu::format_of(first->output()));
  CHECK(cpu::format_of(fourth->output()) == cpu::format_of(first->output()));
  // A reorder would need a copy of the activations in the workspace.
  CHECK(second->memory().forward_workspace < first->output().bytes() / 2);
  CHECK(fourth->memory().forward_workspace < third->output().bytes() / 2);
}

TEST_CASE("the instruction set has a name, a level, and a floor") {
  const std::string isa = cpu_isa();
  const int level = cpu_isa_level(isa);
  CHECK(level >= 2);  // the build needs AVX2
  CHECK(cpu_isa_name(level) == isa);
  CHECK(cpu_isa_level("sse41") < cpu_isa_level("avx"));
  CHECK(cpu_isa_level("avx2") < cpu_isa_level("avx512_core"));
  CHECK_THROWS_WITH_AS(cpu_isa_level("avx3"),
                       "'avx3' is no instruction set: use sse41, avx, avx2 or avx512_core", Error);
  CHECK(missing_instructions() == nullptr);
  limit_cpu_isa(isa);  // to what is there: nothing to do
  // Operations have been made by now, or are made here: too late for less.
  run(*cpu_backend(), all_operations(cpu::Format::plain)[0]);
  CHECK(effective_cpu_isa() == isa);
  CHECK_THROWS_AS(limit_cpu_isa("sse41"), Error);
  CHECK(effective_cpu_isa() == isa);
}

TEST_CASE("the instruction set can be limited after it was asked for") {
  const auto probe = [](const std::string& isa) {
    FILE* pipe = popen(("'" + std::string(ANNULUS_ISA_PROBE) + "' " + isa).c_str(), "r");
    REQUIRE(pipe != nullptr);
    char line[256] = {};
    CHECK(std::fgets(line, sizeof line, pipe) != nullptr);
    const int status = pclose(pipe);
    return std::make_pair(std::string(line), WEXITSTATUS(status));
  };
  CHECK(probe("avx2") == std::make_pair(cpu_isa() + " avx2\n", 0));
  if (cpu_isa() == "avx2") {
    CHECK(probe("avx512_core").second == 5);
  } else {
    CHECK(probe("avx512_core") == std::make_pair(cpu_isa() + " avx512_core\n", 0));
  }
}

TEST_CASE("the one switch on devices makes a CPU backend, and refuses CUDA with the reason") {
  const auto device = make_device(DeviceKind::cpu, Placement{});
  CHECK(make_backend(*device)->bytes() == 0);
  CHECK_THROWS_AS(make_cuda_backend(*device), Error);
}

}  // namespace annulus::testing
