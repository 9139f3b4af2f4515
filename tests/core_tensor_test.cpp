// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <limits>

#include <doctest/doctest.h>

#include "core/device.h"
#include "core/placement.h"
#include "core/tensor.h"

namespace annulus {

namespace {

template <class F>
std::string error_of(ErrorKind kind, const F& f) {
  try {
    f();
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a shape knows its extents, elements and neighbours") {
  const Shape shape{3, 5, 7};
  CHECK(shape.rank() == 3);
  CHECK(shape[2] == 7);
  CHECK(shape.elements() == 105);
  CHECK(shape.elements_from(1) == 35);
  CHECK(shape.elements_from(3) == 1);
  CHECK(to_string(shape) == "3x5x7");
  CHECK(to_string(Shape{}) == "scalar");
  CHECK(Shape{}.elements() == 1);
  CHECK(Shape{4, 0}.elements() == 0);
  CHECK(shape.with_batch(2) == Shape{2, 3, 5, 7});
  CHECK(shape.with_batch(2).without_batch() == shape);
  CHECK_FALSE(shape == Shape{3, 5});
  CHECK_FALSE(shape == Shape{3, 5, 8});
}

TEST_CASE("a shape refuses what cannot be") {
  CHECK(error_of(ErrorKind::usage, [] { Shape{1, -2}; }) == "an extent is at least 0, not -2");
  CHECK(error_of(ErrorKind::usage, [] { Shape{1, 1, 1, 1, 1, 1, 1}; }) ==
        "a tensor has at most 6 axes, not 7");
  CHECK(error_of(ErrorKind::usage, [] { Shape{1, 1, 1, 1, 1, 1}.with_batch(1); }) ==
        "a tensor has at most 6 axes");
  CHECK(error_of(ErrorKind::bug, [] { Shape{}.without_batch(); }) == "a scalar has no batch axis");
}

TEST_CASE("sizes that do not fit in 64 bits are errors") {
  const std::int64_t big = std::int64_t{1} << 32;
  CHECK(Shape{big, big / 4}.elements() == std::int64_t{1} << 62);
  CHECK(error_of(ErrorKind::usage, [&] {
          static_cast<void>(Shape{big, big / 2}.elements());
        }) == "a tensor of shape 4294967296x2147483648 has more than 2^63 elements");
  CHECK(bytes_of(Shape{big, big / 4}, DType::u8) == std::size_t{1} << 62);
  CHECK(error_of(ErrorKind::resource, [&] {
          static_cast<void>(bytes_of(Shape{big, big / 4}, DType::f32));
        }) == "a tensor of shape 4294967296x1073741824 and type f32 has more than 2^63 bytes");
  CHECK(error_of(ErrorKind::resource, [&] {
          Tensor(Shape{big, big / 4}, DType::f64);
        }).find("more than 2^63 bytes") != std::string::npos);
}

TEST_CASE("element types have their sizes and names") {
  const DType all[] = {DType::f32, DType::f64, DType::f16, DType::bf16,
                       DType::i32, DType::i64, DType::u8};
  const std::size_t sizes[] = {4, 8, 2, 2, 4, 8, 1};
  const std::string names[] = {"f32", "f64", "f16", "bf16", "i32", "i64", "u8"};
  for (int i = 0; i < 7; ++i) {
    CHECK(size_of(all[i]) == sizes[i]);
    CHECK(name(all[i]) == names[i]);
  }
  CHECK(dtype_of<float> == DType::f32);
  CHECK(dtype_of<std::int64_t> == DType::i64);
}

TEST_CASE("a tensor is zeroed and refuses the wrong type") {
  const Tensor tensor({2, 3}, DType::f32);
  const auto elements = tensor.as<float>();
  REQUIRE(elements.size() == 6);
  CHECK(std::all_of(elements.begin(), elements.end(), [](float x) { return x == 0; }));
  CHECK(tensor.view().bytes() == 24);
  CHECK(error_of(ErrorKind::bug, [&] { tensor.as<double>(); }) == "a tensor of f32 used as f64");
  TensorView device = tensor.view();
  device.device = DeviceKind::cuda;
  CHECK(error_of(ErrorKind::bug, [&] { device.as<float>(); }) == "device memory used on the host");
  CHECK(Tensor({0, 3}, DType::f32).as<float>().empty());
  std::vector<std::int32_t> numbers = {1, 2, 3};
  const TensorView view = std::span<std::int32_t>(numbers);
  CHECK(view.shape == Shape{3});
  CHECK(view.dtype == DType::i32);
  CHECK(view.as<std::int32_t>()[2] == 3);
}

TEST_CASE("buffers are aligned, zeroed and freed once") {
  const std::size_t mib = std::size_t{1} << 20;
  for (std::size_t bytes : {std::size_t{1}, std::size_t{63}, std::size_t{64}, std::size_t{65},
                            2 * mib - 1, 2 * mib, 2 * mib + 1, 5 * mib}) {
    const Buffer buffer = Buffer::host(bytes);
    CHECK(buffer.bytes() == bytes);
    const auto address = reinterpret_cast<std::uintptr_t>(buffer.data());
    CHECK(address % (bytes >= 2 * mib ? 2 * mib : 64) == 0);
    auto* memory = buffer.as<unsigned char>();
    CHECK(std::all_of(memory, memory + bytes, [](unsigned char c) { return c == 0; }));
    std::fill(memory, memory + bytes, static_cast<unsigned char>(1));
  }
  CHECK(Buffer::host(0).data() == nullptr);

  int released = 0;
  int value = 0;
  {
    Buffer first(&value, 4, [&](void* data, std::size_t bytes) {
      CHECK(data == &value);
      CHECK(bytes == 4);
      ++released;
    });
    Buffer second = std::move(first);
    CHECK(second.data() == &value);
    first = std::move(second);
    CHECK(released == 0);
    first = Buffer();
    CHECK(released == 1);
  }
  CHECK(released == 1);
}

TEST_CASE("memory that there is not is an error with the size") {
  const std::size_t most = std::numeric_limits<std::size_t>::max();
  CHECK(error_of(ErrorKind::resource, [&] { Buffer::host(most); }) ==
        fmt::format("no memory for {} bytes", most));
  CHECK(error_of(ErrorKind::resource, [&] { Buffer::host(most / 4); }) ==
        fmt::format("no memory for {} bytes: Cannot allocate memory (errno 12)", most / 4));
}

TEST_CASE("the CPU device copies, zeroes and names itself") {
  Placement placement;
  placement.threads = 2;
  const auto device = make_device(DeviceKind::cpu, placement);
  CHECK(device->kind() == DeviceKind::cpu);
  CHECK(device->description() == "cpu, 2 threads");
  const Tensor tensor(*device, {4}, DType::i32);
  const std::int32_t numbers[] = {1, 2, 3, 4};
  device->copy(tensor.view().data, numbers, sizeof numbers);
  device->synchronize();
  CHECK(tensor.as<std::int32_t>()[3] == 4);
  device->zero(tensor.view().data, 8);
  CHECK(tensor.as<std::int32_t>()[1] == 0);
  CHECK(tensor.as<std::int32_t>()[2] == 3);
  CHECK(device->allocate_staging(100).bytes() == 100);
}

TEST_CASE("without CUDA the reason is said") {
  std::string reason;
  if (!cuda_available(reason)) {
    CHECK_FALSE(reason.empty());
    CHECK_FALSE(error_of(ErrorKind::resource, [] { make_device(DeviceKind::cuda, {}); }).empty());
  } else {
    CHECK(make_device(DeviceKind::cuda, {})->kind() == DeviceKind::cuda);
  }
}

}  // namespace annulus
