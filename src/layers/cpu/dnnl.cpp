// SPDX-License-Identifier: Apache-2.0
#include "layers/cpu/dnnl.h"

#include <oneapi/dnnl/dnnl_debug.h>

#include "core/error.h"

namespace annulus::cpu {

Dims dims_of(const Shape& shape) {
  return {shape.begin(), shape.end()};
}

Desc any_desc(const Dims& dims) {
  return {dims, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any};
}

Desc plain_desc(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (std::size_t axis = dims.size() - 1; axis > 0; --axis) {
    strides[axis - 1] = strides[axis] * dims[axis];
  }
  return {dims, dnnl::memory::data_type::f32, strides};
}

Blocking blocking_of(const Desc& desc) {
#if DNNL_VERSION_MAJOR >= 3
  if (desc.is_zero() || desc.get_format_kind() != dnnl::memory::format_kind::blocked ||
      desc.get_submemory_offset() != 0) {
    return {};
  }
  return {desc.get_dims(), desc.get_padded_dims(), desc.get_strides(), desc.get_inner_blks(),
          desc.get_inner_idxs()};
#else
  const dnnl_memory_desc_t& data = desc.data;
  if (data.ndims == 0 || data.format_kind != dnnl_blocked || data.offset0 != 0) return {};
  const dnnl_blocking_desc_t& blocks = data.format_desc.blocking;
  const auto copy = [](const dnnl_dim_t* from, int count) { return Dims(from, from + count); };
  return {copy(data.dims, data.ndims), copy(data.padded_dims, data.ndims),
          copy(blocks.strides, data.ndims), copy(blocks.inner_blks, blocks.inner_nblks),
          copy(blocks.inner_idxs, blocks.inner_nblks)};
#endif
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

Call::Call(const Engine& engine, const dnnl::primitive& primitive, std::initializer_list<Arg> args)
    : primitive_(primitive) {
  for (const Arg& arg : args) {
    if (arg.desc.get_size() == 0) {
      memory_.emplace_back();
      continue;
    }
    memory_.push_back(dnnl::memory(arg.desc, engine.engine, static_cast<void*>(DNNL_MEMORY_NONE)));
    args_.push_back({arg.id, memory_.back().get()});
  }
}

void Call::run(const Engine& engine, std::initializer_list<const void*> memory) {
  const void* const* next = memory.begin();
  for (dnnl::memory& object : memory_) {
    void* address = const_cast<void*>(*next++);
    // Setting an address makes oneDNN clear the padding behind it: leave what already fits.
    if (object && object.get_data_handle() != address) object.set_data_handle(address);
  }
  const dnnl_status_t status = dnnl_primitive_execute(primitive_.get(), engine.stream.get(),
                                                      static_cast<int>(args_.size()), args_.data());
  if (status != dnnl_success) fail_dnnl("running a primitive", status);
}

void fail_dnnl(const std::string& what, dnnl_status_t status) {
  const ErrorKind kind = status == dnnl_out_of_memory ? ErrorKind::resource : ErrorKind::bug;
  fail(kind, "oneDNN {}.{}.{}: {}: {}", dnnl_version()->major, dnnl_version()->minor,
       dnnl_version()->patch, what, dnnl_status2str(status));
}

}  // namespace annulus::cpu
