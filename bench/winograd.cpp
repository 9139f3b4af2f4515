// SPDX-License-Identifier: Apache-2.0
// Where Winograd's convolutions are faster than the direct ones: what the rules in
// src/layers/cpu/conv2d.cpp (oneDNN's, AVX-512) and winograd_conv2d.cpp (own, AVX2) are made from.
//   OMP_NUM_THREADS=2 bench_winograd [BATCH...]
#include "layers/cpu/winograd.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>
#include <omp.h>

#include "core/buffer.h"
#include "core/cpu/parallel.h"
#include "layers/cpu/dnnl.h"

namespace {

using annulus::Buffer;
using annulus::cpu::any_desc;
using annulus::cpu::Desc;
using annulus::cpu::Engine;
using annulus::cpu::forward_desc;
using annulus::cpu::WinogradShape;
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

template <class F>
double seconds(const F& run) {
  constexpr int runs = 9;
  std::vector<double> times;
  for (int i = 0; i < runs + 2; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (i >= 2) times.push_back(took.count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 4];
}

double seconds(const Pass& pass, const Engine& engine) {
  dnnl::stream stream = engine.stream;
  return seconds([&] {
    pass.primitive.execute(stream, pass.args);
    stream.wait();
  });
}

struct Times {
  double forward = 0;
  double data = 0;
  double weights = 0;
};

Times of_onednn(const Engine& engine, const Layer& layer, algorithm algorithm) {
  const Passes passes(engine, layer, algorithm);
  return {seconds(passes.forward(), engine), seconds(passes.data(), engine),
          seconds(passes.weights(), engine)};
}

// With the transform of the weights in each pass, as training does it.
Times of_annulus(const Layer& layer) {
  const WinogradShape shape{layer.batch, layer.in, layer.out, layer.extent, layer.extent, 8, 8};
  const auto values = [](std::size_t bytes) {
    Buffer buffer = Buffer::host(bytes);
    std::fill_n(buffer.as<float>(), bytes / sizeof(float), 0.25F);
    return buffer;
  };
  const auto floats = [&](std::int64_t channels) {
    return values(static_cast<std::size_t>(layer.batch * channels * layer.extent * layer.extent) *
                  sizeof(float));
  };
  const Buffer source = floats(layer.in);
  const Buffer result = floats(layer.out);
  const Buffer weight = values(static_cast<std::size_t>(9 * layer.in * layer.out) * sizeof(float));
  const Buffer transformed = values(winograd_weight_bytes(shape));
  const int threads = annulus::parallel_threads();
  const Buffer workspace = values(
      std::max({winograd_workspace(shape, threads), winograd_workspace(shape.transposed(), threads),
                winograd_gradient_workspace(shape)}));
  auto* const scratch = workspace.as<std::byte>();
  const auto convolve = [&](const WinogradShape& s, const Buffer& from, const Buffer& to) {
    winograd_convolve(s, from.as<float>(), transformed.as<float>(), {}, to.as<float>(), scratch);
  };
  return {seconds([&] {
            winograd_transform_weight(shape, weight.as<float>(), transformed.as<float>());
            convolve(shape, source, result);
          }),
          seconds([&] {
            winograd_transform_flipped(shape, weight.as<float>(), transformed.as<float>());
            convolve(shape.transposed(), result, source);
          }),
          seconds([&] {
            winograd_weight_gradient(shape, source.as<float>(), result.as<float>(),
                                     weight.as<float>(), scratch);
          })};
}

bool is_offered(const Engine& engine) {
  try {
    const Passes passes(engine, {1, 64, 64, 16}, algorithm::convolution_winograd);
    return true;
  } catch (const dnnl::error&) {
    return false;
  }
}

std::string ratios(const Times& direct, const Times& winograd) {
  return fmt::format("forward {:.2f}  data {:.2f}  weights {:.2f}",
                     direct.forward / winograd.forward, direct.data / winograd.data,
                     direct.weights / winograd.weights);
}

}  // namespace

int main(int argc, char** argv) {
  const Engine engine;
  std::vector<std::int64_t> batches;
  for (int i = 1; i < argc; ++i) batches.push_back(std::atoll(argv[i]));
  if (batches.empty()) batches = {2, 8, 16, 64};
  annulus::set_parallel_threads(omp_get_max_threads());
  const bool onednn = is_offered(engine);
  std::puts(fmt::format("time of oneDNN's direct form / time of {} Winograd's",
                        onednn ? "its" : "annulus's own")
                .c_str());
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
      const Layer layer{batch, channels, channels, extent};
      const Times direct = of_onednn(engine, layer, algorithm::convolution_direct);
      const Times winograd =
          onednn ? of_onednn(engine, layer, algorithm::convolution_winograd) : of_annulus(layer);
      std::puts(fmt::format("batch {:>3}  {:>3} channels {:>2}x{:<2} {:>5} tiles  {}", batch,
                            channels, extent, extent,
                            batch * ((extent + 3) / 4) * ((extent + 3) / 4),
                            ratios(direct, winograd))
                    .c_str());
    }
  }
  return 0;
}
