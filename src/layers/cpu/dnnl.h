// SPDX-License-Identifier: Apache-2.0
// What this folder needs of oneDNN, and the one place that knows how 2.6 and 3.x differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include "core/shape.h"

namespace annulus::cpu {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

// The processor as oneDNN sees it. Primitives are made for the number of compute threads at that
// time and must run with the same.
struct Engine {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

Dims dims_of(const Shape& shape);
// f32 in whatever layout the primitive likes best.
Desc any_desc(const Dims& dims);
// f32, dense, row-major.
Desc plain_desc(const Dims& dims);
// No memory at all: an absent bias.
inline Desc no_desc() {
  return {};
}

// How a blocked descriptor walks memory, in elements.
struct Blocking {
  Dims dims;
  Dims padded;
  Dims strides;  // of whole blocks
  Dims inner_blocks;
  Dims inner_axes;
};
// Empty dims where the descriptor is not of the blocked kind, or does not start at its memory.
Blocking blocking_of(const Desc& desc);

// Scratchpads are ours: part of an operation's workspace.
dnnl::primitive_attr user_scratchpad();

// A primitive descriptor of a forward operation: `args` as in 3.x, from the propagation kind on.
template <class Primitive, class... Args>
typename Primitive::primitive_desc forward_desc_with(const Engine& engine,
                                                     const dnnl::primitive_attr& attributes,
                                                     const Args&... args) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine.engine, args..., attributes};
#else
  return {typename Primitive::desc(args...), attributes, engine.engine};
#endif
}

// The same without attributes of its own.
template <class Primitive, class... Args>
typename Primitive::primitive_desc forward_desc(const Engine& engine, const Args&... args) {
  return forward_desc_with<Primitive>(engine, user_scratchpad(), args...);
}

// The same of a backward operation, which is told the forward one it belongs to.
template <class Primitive, class Hint, class... Args>
typename Primitive::primitive_desc backward_desc(const Engine& engine, const Hint& hint,
                                                 const Args&... args) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine.engine, args..., hint, user_scratchpad()};
#else
  return {typename Primitive::desc(args...), user_scratchpad(), engine.engine, hint};
#endif
}

// A primitive with its memory objects made once. A run only sets addresses: it allocates nothing
// of ours.
class Call {
 public:
  struct Arg {
    int id;  // DNNL_ARG_...
    Desc desc;
  };

  Call() = default;
  // An argument with an empty descriptor is left out of the call.
  Call(const Engine& engine, const dnnl::primitive& primitive, std::initializer_list<Arg> args);
  // `memory` in the order of `args`. Error (bug or resource) with oneDNN's status.
  void run(const Engine& engine, std::initializer_list<const void*> memory);

 private:
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memory_;  // one an argument, empty ones too
  std::vector<dnnl_exec_arg_t> args_;
};

// The annulus error for a failed call of oneDNN, with what was tried.
[[noreturn]] void fail_dnnl(const std::string& what, dnnl_status_t status);

}  // namespace annulus::cpu
