// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "core/rng.h"
#include "support/op_harness.h"

namespace annulus::testing {
namespace {

using Make = std::unique_ptr<Op> (*)(Backend&, const OpRequest&);

OpCase simple_case(Make make, std::vector<Shape> inputs, cpu::Format format = cpu::Format::plain) {
  OpCase op;
  op.make = make;
  op.inputs = std::move(inputs);
  op.format = format;
  return op;
}

std::unique_ptr<Op> relu(Backend& b, const OpRequest& r) {
  return b.relu(r);
}
std::unique_ptr<Op> softmax(Backend& b, const OpRequest& r) {
  return b.softmax(r);
}
std::unique_ptr<Op> add(Backend& b, const OpRequest& r) {
  return b.add(r);
}
std::unique_ptr<Op> concat(Backend& b, const OpRequest& r) {
  return b.concat(r);
}
std::unique_ptr<Op> flatten(Backend& b, const OpRequest& r) {
  return b.flatten(r);
}
std::unique_ptr<Op> to_plain(Backend& b, const OpRequest& r) {
  return b.to_plain(r);
}
std::unique_ptr<Op> dropout(Backend& b, const OpRequest& r) {
  return b.dropout(r, {0.3});
}

constexpr cpu::Format all_formats[] = {cpu::Format::plain, cpu::Format::channels_last,
                                       cpu::Format::blocked4, cpu::Format::blocked8,
                                       cpu::Format::blocked16};

}  // namespace

TEST_CASE("ReLU lets NaN pass and gradients only where the output is above zero") {
  OpCase op = simple_case(relu, {{1, 5}});
  op.input_values = {{-1, 0, 2, NAN, -0.5F}};
  op.output_gradient = {1, 2, 3, 4, 5};
  const OpResult result = run(*cpu_backend(), op);
  CHECK(result.output[0] == 0);
  CHECK(result.output[2] == 2);
  CHECK(std::isnan(result.output[3]));
  CHECK(result.input_gradients[0] == Values{0, 0, 3, 0, 0});
}

TEST_CASE("softmax gives literal answers, also for large scores") {
  OpCase op = simple_case(softmax, {{2, 2}});
  op.input_values = {{0, std::log(3.0F), 1000, 1000}};
  op.output_gradient = {1, 0, 1, 0};
  const OpResult result = run(*cpu_backend(), op);
  const double y[] = {0.25, 0.75, 0.5, 0.5};
  const double dx[] = {0.1875, -0.1875, 0.25, -0.25};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(result.output[i] == doctest::Approx(y[i]));
    CHECK(result.input_gradients[0][i] == doctest::Approx(dx[i]));
  }
}

TEST_CASE("elementwise operations agree with plain loops in every layout") {
  for (std::int64_t channels : {1, 7, 8, 16, 23, 24, 25}) {
    for (auto format : all_formats) {
      CAPTURE(channels);
      CAPTURE(static_cast<int>(format));
      const Shape images{2, channels, 3, 5};
      for (Make make : {relu, softmax, dropout}) {
        CHECK(against_reference(simple_case(make, {images}, format)) < 1e-6);
        CHECK(against_reference(simple_case(make, {{3, channels}})) < 1e-6);
      }
      for (Make make : {flatten, to_plain}) {
        CHECK(against_reference(simple_case(make, {images}, format)) == 0);
        CHECK(against_reference(simple_case(make, {{2, channels, 1, 1}}, format)) == 0);
      }
      CHECK(against_reference(simple_case(add, {images, images}, format)) < 1e-6);
      CHECK(against_reference(simple_case(add, {images, images, images}, format)) < 1e-6);
    }
  }
}

TEST_CASE("concat agrees with plain loops, in whole blocks and across them") {
  for (auto format : all_formats) {
    for (std::int64_t first : {1, 5, 8, 16, 32}) {
      CAPTURE(first);
      CAPTURE(static_cast<int>(format));
      CHECK(against_reference(simple_case(concat, {{2, first, 3, 2}, {2, 17, 3, 2}, {2, 16, 3, 2}},
                                          format)) == 0);
    }
  }
  CHECK(against_reference(simple_case(concat, {{3, 4}, {3, 5}})) == 0);
}

TEST_CASE("add and batch norm take their second input in another layout") {
  const Shape shape{2, 20, 3, 3};
  for (auto first : all_formats) {
    for (auto second : all_formats) {
      OpCase op;
      op.inputs = {shape, shape};
      op.format = first;
      op.second_format = second;
      op.make = add;
      CHECK(against_reference(op) < 1e-6);
      op.make = [](Backend& b, const OpRequest& r) { return b.batch_norm(r, {1e-5, true, true}); };
      op.parameters = {{20}, {20}};
      op.statistics = 20;
      CHECK(against_reference(op) < 1e-5);
    }
  }
}

TEST_CASE("concat takes inputs of different layouts") {
  for (auto first : all_formats) {
    for (auto second : all_formats) {
      OpCase op = simple_case(concat, {{2, 20, 3, 3}, {2, 9, 3, 3}}, first);
      op.second_format = second;
      CHECK(against_reference(op) == 0);
    }
  }
}

TEST_CASE("dropout keeps the elements that its random numbers say, and scales them") {
  OpCase op = simple_case([](Backend& b, const OpRequest& r) { return b.dropout(r, {0.5}); },
                          {{2, 3, 2, 3}});
  op.input_values = {Values(36, 1)};
  op.output_gradient = Values(36, 3);
  op.samples = {41, 7};
  op.iteration = 5;
  const RandomStream random(7, RandomUse::dropout, "layer");
  for (auto format : all_formats) {
    op.format = format;
    const OpResult result = run(*cpu_backend(), op);
    for (std::size_t i = 0; i < 36; ++i) {
      const bool kept = random.uniform(i % 18, i < 18 ? 41 : 7, 5) >= 0.5F;
      CHECK(result.output[i] == (kept ? 2 : 0));
      CHECK(result.input_gradients[0][i] == (kept ? 6 : 0));
    }
  }
}

TEST_CASE("dropout drops its rate of many elements and does nothing in evaluation") {
  OpCase op = simple_case(dropout, {{8, 10000}});
  op.input_values = {Values(80000, 1)};
  randomize(op);
  const Values output = run(*cpu_backend(2), op).output;
  const auto dropped = std::count(output.begin(), output.end(), 0.0F);
  CHECK(dropped == doctest::Approx(24000).epsilon(0.03));
  op.mode = Mode::evaluate;
  CHECK(run(*cpu_backend(), op).output == op.input_values[0]);
}

TEST_CASE("gradients of elementwise operations are the differences of their outputs") {
  OpCase op = simple_case(relu, {{2, 3, 2, 2}});
  op.input_values = {distinct_values(24, 2)};
  CHECK(gradient_error(op) < 1e-3);
  CHECK(gradient_error(simple_case(softmax, {{3, 5}})) < 1e-3);
  CHECK(gradient_error(simple_case(softmax, {{2, 5, 2, 3}}, cpu::Format::blocked8)) < 1e-3);
  CHECK(gradient_error(simple_case(dropout, {{2, 9}})) < 1e-3);
  CHECK(gradient_error(simple_case(add, {{2, 3}, {2, 3}, {2, 3}})) < 1e-3);
  CHECK(gradient_error(simple_case(concat, {{2, 3, 2, 2}, {2, 2, 2, 2}})) < 1e-3);
  CHECK(gradient_error(simple_case(flatten, {{2, 3, 2, 2}}, cpu::Format::blocked16)) < 1e-3);
}

TEST_CASE("flatten of plain or one-pixel values moves nothing") {
  const auto backend = cpu_backend();
  OpRequest request;
  request.name = "flatten";
  request.input_gradient = {true};
  request.inputs = {backend->plain({2, 3, 4, 5})};
  CHECK(backend->flatten(request)->memory().alias);
  CHECK(backend->flatten(request)->output().shape == Shape{2, 60});
  request.inputs = {cpu::make_value({2, 32, 1, 1}, cpu::Format::blocked16)};
  CHECK(backend->flatten(request)->memory().alias);
  request.inputs = {cpu::make_value({2, 24, 1, 1}, cpu::Format::blocked16)};
  CHECK(!backend->flatten(request)->memory().alias);
}

TEST_CASE("accumulate adds whole values, fill sets a pattern") {
  const auto backend = cpu_backend(2);
  const ValueType type = cpu::make_value({3, 20, 50, 20}, cpu::Format::blocked16);
  Values into(type.bytes() / sizeof(float), 1);
  const Values from(into.size(), 2);
  backend->accumulate(type, into.data(), from.data());
  CHECK(into == Values(into.size(), 3));
  std::vector<std::uint32_t> words(70001, 1);
  backend->fill(reinterpret_cast<std::byte*>(words.data()), words.size() * 4 - 4, 0x7FA00001);
  CHECK(std::count(words.begin(), words.end(), 0x7FA00001U) == 70000);
  CHECK(words.back() == 1);
}

}  // namespace annulus::testing
