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
  try {
    add_step(engine, from, to, plan);
  } catch (const dnnl::error& error) {
    const Dims dims = blocking_of(from).dims;
    if (error.status != dnnl_unimplemented || dims.empty()) throw;
    const Desc plain = plain_desc(dims);
    between_ = plan.add(plain.get_size());
    add_step(engine, from, plain, plan);
    add_step(engine, plain, to, plan);
  }
}

void Reorder::add_step(const Engine& engine, const Desc& from, const Desc& to,
                       WorkspacePlan& plan) {
  const dnnl::reorder::primitive_desc desc(engine.engine, from, engine.engine, to,
                                           user_scratchpad());
  Step& step = steps_.emplace_back();
  step.scratchpad = plan.add(desc.scratchpad_desc().get_size());
  step.call = Call(
      engine, dnnl::reorder(desc),
      {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}, {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}});
}

void Reorder::run(const Engine& engine, const void* from, void* to, std::byte* workspace) {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const bool last = i + 1 == steps_.size();
    void* target = last ? to : workspace + between_;
    steps_[i].call.run(engine, {from, target, workspace + steps_[i].scratchpad});
    from = target;
  }
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
