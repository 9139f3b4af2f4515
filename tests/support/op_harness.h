// SPDX-License-Identifier: Apache-2.0
// Runs one operation of a backend the way an executor does, on data in the logical order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "layers/cpu/layout.h"
#include "layers/ops.h"
#include "support/aligned.h"
#include "support/library_allocations.h"

namespace annulus::testing {

using Values = std::vector<float, Aligned<float>>;

// An operation with its data. Parameters and inputs are filled by `randomize`.
struct OpCase {
  std::function<std::unique_ptr<Op>(Backend&, const OpRequest&)> make;
  std::vector<Shape> inputs;
  std::vector<Shape> parameters = {};
  std::int64_t statistics = 0;  // channels of each of two statistics; 0: none
  Mode mode = Mode::train;
  cpu::Format format = cpu::Format::plain;        // of the inputs on the CPU backend
  std::optional<cpu::Format> second_format = {};  // of inputs after the first
  int uses = 1;
  std::vector<std::int64_t> samples = {};  // ids; default 0, 1, ...
  std::int64_t iteration = 0;

  std::vector<Values> input_values = {};
  std::vector<Values> parameter_values = {};
  std::vector<Values> running = {};
  Values output_gradient = {};  // empty: random
};

// Fills what is empty with numbers in [-1, 1) that depend on `seed` alone.
void randomize(OpCase& op, std::uint32_t seed = 1);
Values random_values(std::int64_t count, std::uint32_t seed);
// Numbers that differ by at least 0.1 from each other, in random order: no ties, no kinks nearby.
Values distinct_values(std::int64_t count, std::uint32_t seed);

struct OpResult {
  Shape shape;
  std::string implementation;
  Values output;
  std::vector<Values> input_gradients;
  std::vector<Values> parameter_gradients;
  std::vector<Values> batch_sums;
};

// Forward, and backward in Mode::train. All memory it writes is poisoned before; inputs and outputs
// that backward does not ask for are null; every padding must come out as zero, else an Error.
// `in_place` lets it overwrite where it says it can.
OpResult run(Backend& backend, const OpCase& op, bool in_place = false);

// What a second forward and backward of the same operation allocate.
Allocations allocations_of_second_run(Backend& backend, const OpCase& op);

// A logical value in the layout of `type`, and back.
Values packed(const ValueType& type, const Values& logical);
Values unpacked(const ValueType& type, const float* memory);

// The largest difference, relative to the largest value of `b` (at least 1).
double difference(const Values& a, const Values& b);
// The largest difference of all parts of two results.
double difference(const OpResult& a, const OpResult& b);
bool same_bits(const OpResult& a, const OpResult& b);

// The CPU backend against the naive reference, planned memory and in place.
double against_reference(OpCase op);

// The largest error of the CPU backend's gradients of inputs and parameters against central
// differences with this step, relative to the largest gradient (at least 1).
double gradient_error(OpCase op, double step = 1e-2);

// A CPU backend, with that many compute threads from now on.
std::unique_ptr<Backend> cpu_backend(int threads = 1);

}  // namespace annulus::testing
