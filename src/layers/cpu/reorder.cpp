// SPDX-License-Identifier: Apache-2.0
#include "layers/cpu/reorder.h"

#include "layers/cpu/layout.h"

namespace annulus::cpu {

bool same_memory(const Desc& a, const Desc& b) {
  if (a == b) return true;
  const auto format_a = format_of(a);
  const auto format_b = format_of(b);
  const Dims dims = blocking_of(a).dims;
  if (!format_a || !format_b || dims != blocking_of(b).dims) return false;
  return same_memory(Shape(std::span<const std::int64_t>(dims)), *format_a, *format_b);
}

Reorder::Reorder(const Engine& engine, const Desc& from, const Desc& to, WorkspacePlan& plan) {
  const dnnl::reorder::primitive_desc desc(engine.engine, from, engine.engine, to,
                                           user_scratchpad());
  scratchpad_ = plan.add(desc.scratchpad_desc().get_size());
  call_ = Call(
      engine, dnnl::reorder(desc),
      {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}, {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}});
}

void Reorder::run(const Engine& engine, const void* from, void* to, std::byte* workspace) {
  call_.run(engine, {from, to, workspace + scratchpad_});
}

InputReorder::InputReorder(const Engine& engine, const Desc& from, const Desc& to,
                           WorkspacePlan& plan)
    : needed_(!same_memory(from, to)) {
  if (!needed_) return;
  copy_ = plan.add(to.get_size());
  reorder_ = Reorder(engine, from, to, plan);
}

const void* InputReorder::run(const Engine& engine, const void* value, std::byte* workspace) {
  if (!needed_) return value;
  reorder_.run(engine, value, workspace + copy_, workspace);
  return workspace + copy_;
}

OutputReorder::OutputReorder(const Engine& engine, const Desc& from, const Desc& to,
                             WorkspacePlan& plan)
    : needed_(!same_memory(from, to)) {
  if (!needed_) return;
  copy_ = plan.add(from.get_size());
  reorder_ = Reorder(engine, from, to, plan);
}

void OutputReorder::run(const Engine& engine, void* value, std::byte* workspace) {
  if (needed_) reorder_.run(engine, workspace + copy_, value, workspace);
}

}  // namespace annulus::cpu
