// SPDX-License-Identifier: Apache-2.0
#include "core/state.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include <xxhash.h>

#include "core/error.h"

namespace annulus {

void NamedState::claim(std::string_view name) {
  const auto same = [&](const auto& entry) { return entry.name == name; };
  const bool taken = std::any_of(tensors_.begin(), tensors_.end(), same) ||
                     std::any_of(scalars_.begin(), scalars_.end(), same);
  require(!taken, ErrorKind::bug, "two entries of the state are named '{}'", name);
}

void NamedState::add(StateTensor tensor) {
  claim(tensor.name);
  tensors_.push_back(std::move(tensor));
}

void NamedState::add(std::string name, TensorView view) {
  require(view.device == DeviceKind::cpu, ErrorKind::bug, "'{}' is not host memory", name);
  StateTensor tensor{std::move(name), view.shape, view.dtype, {}, {}};
  const auto copy = [](void* to, const void* from, std::size_t bytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);  // an empty tensor has a null pointer
  };
  tensor.read = [view, copy](std::span<std::byte> to) { copy(to.data(), view.data, to.size()); };
  tensor.write = [view, copy](std::span<const std::byte> from) {
    copy(view.data, from.data(), from.size());
  };
  add(std::move(tensor));
}

void NamedState::add(std::string name, std::int64_t* value) {
  claim(name);
  scalars_.push_back({std::move(name), value});
}

void NamedState::add(std::string name, double* value) {
  claim(name);
  scalars_.push_back({std::move(name), value});
}

void NamedState::add(std::string name, std::string* value) {
  claim(name);
  scalars_.push_back({std::move(name), value});
}

std::string hash_of(std::span<const StateTensor> tensors) {
  std::vector<const StateTensor*> sorted;
  for (const StateTensor& tensor : tensors) sorted.push_back(&tensor);
  std::sort(sorted.begin(), sorted.end(),
            [](const StateTensor* a, const StateTensor* b) { return a->name < b->name; });

  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> hash(XXH3_createState(),
                                                                      &XXH3_freeState);
  XXH3_64bits_reset(hash.get());
  std::vector<std::byte> bytes;
  for (const StateTensor* tensor : sorted) {
    const std::string head = tensor->name + '\0' + to_string(tensor->shape) + '\0';
    XXH3_64bits_update(hash.get(), head.data(), head.size());
    bytes.resize(tensor->bytes());
    tensor->read(bytes);
    XXH3_64bits_update(hash.get(), bytes.data(), bytes.size());
  }
  return fmt::format("{:016x}", XXH3_64bits_digest(hash.get()));
}

}  // namespace annulus
