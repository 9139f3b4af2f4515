// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "layers/cpu/dnnl.h"

namespace annulus::cpu {

// Scratch space of one call, planned at creation: pieces aligned to 64 bytes.
class WorkspacePlan {
 public:
  // The offset of a new piece.
  std::size_t add(std::size_t bytes) {
    const std::size_t offset = bytes_;
    bytes_ += (bytes + 63) / 64 * 64;
    return offset;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

// Whether two descriptors put the same values at the same addresses.
bool same_memory(const Desc& a, const Desc& b);

// Copies a value from one layout to another; by way of the plain one where oneDNN has no direct
// way.
class Reorder {
 public:
  Reorder() = default;
  Reorder(const Engine& engine, const Desc& from, const Desc& to, WorkspacePlan& plan);
  void run(const Engine& engine, const void* from, void* to, std::byte* workspace);

 private:
  void add_step(const Engine& engine, const Desc& from, const Desc& to, WorkspacePlan& plan);

  struct Step {
    std::size_t scratchpad = 0;
    Call call;
  };
  std::vector<Step> steps_;  // one or two
  std::size_t between_ = 0;  // the plain copy between two
};

// Brings a value into the layout that a primitive reads; nothing where it has it already.
class InputReorder {
 public:
  InputReorder() = default;
  InputReorder(const Engine& engine, const Desc& from, const Desc& to, WorkspacePlan& plan);
  // The value in the wanted layout: itself, or a copy in the workspace.
  const void* run(const Engine& engine, const void* value, std::byte* workspace);

 private:
  bool needed_ = false;
  std::size_t copy_ = 0;
  Reorder reorder_;
};

// Lets a primitive write in its layout what is wanted in another.
class OutputReorder {
 public:
  OutputReorder() = default;
  OutputReorder(const Engine& engine, const Desc& from, const Desc& to, WorkspacePlan& plan);
  // Where the primitive is to write.
  void* target(void* value, std::byte* workspace) const {
    return needed_ ? workspace + copy_ : value;
  }
  // After it has: moves the result to `value`.
  void run(const Engine& engine, void* value, std::byte* workspace);

 private:
  bool needed_ = false;
  std::size_t copy_ = 0;
  Reorder reorder_;
};

}  // namespace annulus::cpu
