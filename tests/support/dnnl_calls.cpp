// SPDX-License-Identifier: Apache-2.0
#include "support/dnnl_calls.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>

namespace {

std::atomic<std::int64_t> created{0};
std::atomic<std::int64_t> executed{0};
std::atomic<std::int64_t> reorders{0};

// The library's own function of this name.
template <class Function>
Function* behind(const char* name, Function* /*type*/) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) {
    std::fprintf(stderr, "no function %s behind the program's own\n", name);
    std::abort();
  }
  return reinterpret_cast<Function*>(found);
}

bool is_reorder(const_dnnl_primitive_t primitive) {
  const_dnnl_primitive_desc_t desc = nullptr;
  dnnl_primitive_kind_t kind = dnnl_undefined_primitive;
  return dnnl_primitive_get_primitive_desc(primitive, &desc) == dnnl_success &&
         dnnl_primitive_desc_query(desc, dnnl_query_primitive_kind, 0, &kind) == dnnl_success &&
         kind == dnnl_reorder;
}

}  // namespace

extern "C" {
dnnl_status_t dnnl_primitive_create(dnnl_primitive_t* primitive,
                                    const_dnnl_primitive_desc_t primitive_desc) {
  static auto* const real = behind("dnnl_primitive_create", &dnnl_primitive_create);
  ++created;
  return real(primitive, primitive_desc);
}

dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream,
                                     int nargs, const dnnl_exec_arg_t* args) {
  static auto* const real = behind("dnnl_primitive_execute", &dnnl_primitive_execute);
  ++executed;
  if (is_reorder(primitive)) ++reorders;
  return real(primitive, stream, nargs, args);
}
}

annulus::testing::DnnlCalls annulus::testing::dnnl_calls() {
  return {created, executed, reorders};
}
