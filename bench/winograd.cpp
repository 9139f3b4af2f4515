// SPDX-License-Identifier: Apache-2.0
// Where Winograd's convolutions are faster than the direct ones: what the rule in
// src/layers/cpu/conv2d.cpp is made from.
//   OMP_NUM_THREADS=2 bench_winograd [BATCH...]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "layers/cpu/dnnl.h"

namespace {

using annulus::cpu::any_desc;
using annulus::cpu::Desc;
using annulus::cpu::Engine;
using annulus::cpu::forward_desc;
using dnnl::algorithm;

struct Layer {
  std::int64_t batch, in, out, extent;
};

// One pass with memory of its own.
struct Pass {
  dnnl::primitive primitive;
  std::unordered_map<int, dnnl::memory> args;
};

class Passes {
 public:
  Passes(const Engine& engine, const Layer& layer, algorithm algorithm)
      : engine_(engine),
        algorithm_(algorithm),
        x_(any_desc({layer.batch, layer.in, layer.extent, layer.extent})),
        w_(any_desc({layer.out, layer.in, 3, 3})),
        y_(any_desc({layer.batch, layer.out, layer.extent, layer.extent})),
        forward_(forward_desc<dnnl::convolution_forward>(
            engine, dnnl::prop_kind::forward_training, algorithm, x_, w_, y_, one_, one_, one_)) {}

  Pass forward() const {
    return {dnnl::convolution_forward(forward_),
            {{DNNL_ARG_SRC, memory(forward_.src_desc())},
             {DNNL_ARG_WEIGHTS, memory(forward_.weights_desc())},
             {DNNL_ARG_DST, memory(forward_.dst_desc())},
             {DNNL_ARG_SCRATCHPAD, memory(forward_.scratchpad_desc())}}};
  }
  Pass data() const {
    const auto desc = backward<dnnl::convolution_backward_data>();
    return {dnnl::convolution_backward_data(desc),
            {{DNNL_ARG_DIFF_SRC, memory(desc.diff_src_desc())},
             {DNNL_ARG_WEIGHTS, memory(desc.weights_desc())},
             {DNNL_ARG_DIFF_DST, memory(desc.diff_dst_desc())},
             {DNNL_ARG_SCRATCHPAD, memory(desc.scratchpad_desc())}}};
  }
  Pass weights() const {
    const auto desc = backward<dnnl::convolution_backward_weights>();
    return {dnnl::convolution_backward_weights(desc),
            {{DNNL_ARG_SRC, memory(desc.src_desc())},
             {DNNL_ARG_DIFF_WEIGHTS, memory(desc.diff_weights_desc())},
             {DNNL_ARG_DIFF_DST, memory(desc.diff_dst_desc())},
             {DNNL_ARG_SCRATCHPAD, memory(desc.scratchpad_desc())}}};
  }

 private:
  template <class Primitive>
  typename Primitive::primitive_desc backward() const {
    return annulus::cpu::backward_desc<Primitive>(engine_, forward_, algorithm_, x_, w_, y_, one_,
                                                  one_, one_);
  }
  dnnl::memory memory(const Desc& desc) const {
    dnnl::memory result(desc, engine_.engine);
    auto* values = static_cast<float*>(result.get_data_handle());
    for (std::size_t i = 0; i < desc.get_size() / sizeof(float); ++i)
      values[i] = static_cast<float>(i % 17) * 0.01F;
    return result;
  }

  const Engine& engine_;
  algorithm algorithm_;
  dnnl::memory::dims one_ = {1, 1};
  Desc x_, w_, y_;
  dnnl::convolution_forward::primitive_desc forward_;
};

double seconds(Pass pass, const Engine& engine) {
  dnnl::stream stream = engine.stream;
  constexpr int runs = 9;
  std::vector<double> times;
  for (int i = 0; i < runs + 2; ++i) {
    const auto start = std::chrono::steady_clock::now();
    pass.primitive.execute(stream, pass.args);
    stream.wait();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (i >= 2) times.push_back(took.count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 4];
}

std::string ratios(const Engine& engine, const Layer& layer) {
  const Passes direct(engine, layer, algorithm::convolution_direct);
  const Passes winograd(engine, layer, algorithm::convolution_winograd);
  return fmt::format("forward {:.2f}  data {:.2f}  weights {:.2f}",
                     seconds(direct.forward(), engine) / seconds(winograd.forward(), engine),
                     seconds(direct.data(), engine) / seconds(winograd.data(), engine),
                     seconds(direct.weights(), engine) / seconds(winograd.weights(), engine));
}

}  // namespace

int main(int argc, char** argv) {
  const Engine engine;
  std::vector<std::int64_t> batches;
  for (int i = 1; i < argc; ++i) batches.push_back(std::atoll(argv[i]));
  if (batches.empty()) batches = {2, 8, 16, 64};
  std::puts("time of the direct form / time of Winograd's");
  for (const std::int64_t batch : batches) {
    for (const auto& [channels, extent] : {std::pair<std::int64_t, std::int64_t>{16, 32},
                                           {32, 16},
                                           {32, 28},
                                           {64, 8},
                                           {64, 16},
                                           {64, 56},
                                           {128, 28},
                                           {256, 14},
                                           {512, 7}}) {
      try {
        const std::string text = ratios(engine, {batch, channels, channels, extent});
        std::puts(fmt::format("batch {:>3}  {:>3} channels {:>2}x{:<2} {:>5} tiles  {}", batch,
                              channels, extent, extent,
                              batch * ((extent + 3) / 4) * ((extent + 3) / 4), text)
                      .c_str());
      } catch (const dnnl::error& error) {
        std::puts(
            fmt::format("batch {} {}x{}: {}", batch, channels, extent, error.message).c_str());
        return 1;
      }
    }
  }
  return 0;
}
