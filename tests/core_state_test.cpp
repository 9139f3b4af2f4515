// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <vector>

#include <doctest/doctest.h>
#include <xxhash.h>

#include "core/error.h"
#include "core/state.h"

namespace annulus {

namespace {

struct Weights {
  std::vector<float> conv = {1, 2, 3, 4, 5, 6};
  std::vector<float> bias = {0.5F, -0.0F};

  std::string hash(Shape shape = {2, 3}, const std::string& name = "conv1/weight",
                   bool swap = false) {
    NamedState state;
    const auto add_bias = [&] { state.add("conv1/bias", std::span<float>(bias)); };
    if (swap) add_bias();
    state.add(name, TensorView(conv.data(), shape, DType::f32));
    if (!swap) add_bias();
    return hash_of(state.tensors());
  }
};

}  // namespace

TEST_CASE("state reads and writes its owners' memory") {
  std::vector<float> numbers = {1, 2, 3};
  std::int64_t step = 7;
  double scale = 0.5;
  std::string word = "x";
  NamedState state;
  state.add("w", std::span<float>(numbers));
  state.add("step", &step);
  state.add("scale", &scale);
  state.add("word", &word);
  REQUIRE(state.tensors().size() == 1);
  REQUIRE(state.scalars().size() == 3);
  const StateTensor& tensor = state.tensors()[0];
  CHECK(tensor.bytes() == 12);
  std::vector<std::byte> bytes(12);
  tensor.read(bytes);
  float copied[3];
  std::memcpy(copied, bytes.data(), 12);
  CHECK(copied[2] == 3);
  copied[0] = 9;
  std::memcpy(bytes.data(), copied, 12);
  tensor.write(bytes);
  CHECK(numbers[0] == 9);
  *std::get<std::int64_t*>(state.scalars()[0].value) = 8;
  CHECK(step == 8);
}

TEST_CASE("a name of the state is taken once") {
  std::int64_t step = 0;
  std::vector<float> numbers(2);
  NamedState state;
  state.add("a", &step);
  const auto message = [&](auto&& add) {
    try {
      add();
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::bug);
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(message([&] { state.add("a", std::span<float>(numbers)); }) ==
        "two entries of the state are named 'a'");
  CHECK(message([&] { state.add("a", &step); }) == "two entries of the state are named 'a'");
  TensorView device(numbers.data(), {2}, DType::f32, DeviceKind::cuda);
  CHECK(message([&] { state.add("b", device); }) == "'b' is not host memory");
}

TEST_CASE("the hash of weights never changes") {
  // Name, zero byte, shape, zero byte, elements; the tensors in the order of their names.
  std::string text(
      "conv1/bias\0"
      "2\0",
      13);
  Weights weights;
  text.append(reinterpret_cast<const char*>(weights.bias.data()), 8);
  text.append(
      "conv1/weight\0"
      "2x3\0",
      17);
  text.append(reinterpret_cast<const char*>(weights.conv.data()), 24);
  CHECK(weights.hash() == fmt::format("{:016x}", XXH3_64bits(text.data(), text.size())));
  CHECK(Weights().hash() == "660ac83e065e3e2d");
  CHECK(hash_of({}) == "2d06800538d394c2");  // XXH3 of nothing
}

TEST_CASE("the hash sees names, shapes, bytes and their order, not the order of adding") {
  const std::string hash = Weights().hash();
  CHECK(hash.size() == 16);
  CHECK(Weights().hash({2, 3}, "conv1/weight", true) == hash);
  CHECK(Weights().hash({3, 2}) != hash);
  CHECK(Weights().hash({2, 3}, "conv2/weight") != hash);
  CHECK(Weights().hash({2, 3}, "a/weight", true) == Weights().hash({2, 3}, "a/weight"));
  Weights changed;
  changed.conv[5] += 1e-6F;
  CHECK(changed.hash() != hash);
  Weights swapped;
  std::swap(swapped.conv[0], swapped.conv[1]);
  CHECK(swapped.hash() != hash);
  Weights signed_zero;
  signed_zero.bias[1] = 0.0F;
  CHECK(signed_zero.hash() != hash);
}

TEST_CASE("an empty tensor is a part of the state") {
  NamedState state;
  state.add("none", TensorView(nullptr, {0, 4}, DType::f32));
  std::vector<std::byte> bytes;
  state.tensors()[0].read(bytes);
  state.tensors()[0].write(bytes);
  CHECK(hash_of(state.tensors()) != hash_of({}));
}

}  // namespace annulus
