// SPDX-License-Identifier: Apache-2.0
// How fast oneDNN alone computes the convolutions of a ResNet-50 v1.5 training step: forward,
// backward by data (not for the first layer) and by weights, direct algorithm, each in the layout
// that oneDNN likes best, with nothing in between. What no engine on direct convolutions passes.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>
#include <sys/mman.h>

namespace {

using dnnl::algorithm;
using dnnl::memory;

struct Layer {
  memory::dim in, out, kernel, stride, size;  // size: of the square input image
};

memory::dim size_after(const Layer& layer) {
  return (layer.size + 2 * (layer.kernel / 2) - layer.kernel) / layer.stride + 1;
}

// One bottleneck: 1x1, 3x3 with the stride, 1x1, and a 1x1 projection where the shape changes.
void add_bottleneck(std::vector<Layer>& layers, memory::dim in, memory::dim width,
                    memory::dim stride, memory::dim size, bool project) {
  if (project) layers.push_back({in, 4 * width, 1, stride, size});
  layers.push_back({in, width, 1, 1, size});
  layers.push_back({width, width, 3, stride, size});
  layers.push_back({width, 4 * width, 1, 1, size_after(layers.back())});
}

std::vector<Layer> resnet50(memory::dim image) {
  struct Stage {
    memory::dim width, repeat, stride;
  };
  std::vector<Layer> layers = {{3, 64, 7, 2, image}};
  memory::dim size = (size_after(layers.back()) + 1) / 2;  // the max pooling of stride 2
  memory::dim in = 64;
  for (const Stage& stage : {Stage{64, 3, 1}, {128, 4, 2}, {256, 6, 2}, {512, 3, 2}}) {
    for (memory::dim k = 0; k < stage.repeat; ++k) {
      add_bottleneck(layers, in, stage.width, k == 0 ? stage.stride : 1, size, k == 0);
      size = layers.back().size;
      in = 4 * stage.width;
    }
  }
  return layers;
}

// Memory on huge pages, touched once; lives as long as the process.
std::span<std::byte> huge_memory(std::size_t bytes) {
  void* const start =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) throw std::runtime_error("no memory for the convolutions");
  madvise(start, bytes, MADV_HUGEPAGE);  // slower pages do as well
  return {static_cast<std::byte*>(start), bytes};
}

// Ordinary numbers: zeros and denormals would have a speed of their own.
void fill(std::span<std::byte> bytes) {
  std::vector<float> tile(1 << 18);
  std::minstd_rand random(1);
  for (float& value : tile) value = std::uniform_real_distribution<float>(-0.1F, 0.1F)(random);
  const std::size_t tile_bytes = tile.size() * sizeof(float);
  for (std::size_t at = 0; at < bytes.size(); at += tile_bytes) {
    std::memcpy(&bytes[at], tile.data(), std::min(tile_bytes, bytes.size() - at));
  }
}

std::size_t rounded(std::size_t bytes) {
  constexpr std::size_t line = 4096;
  return (bytes + line - 1) / line * line;
}

class Convolutions {
 public:
  Convolutions(memory::dim batch, memory::dim image) {
    for (const Layer& layer : resnet50(image)) add(layer, batch);
    std::reverse(backward_.begin(), backward_.end());
    const std::span<std::byte> bytes = huge_memory(total_);
    fill(bytes);
    for (Op& op : forward_) place(op, bytes);
    for (Op& op : backward_) place(op, bytes);
  }

  void step() {
    for (Op& op : forward_) op.primitive.execute(stream_, op.arguments);
    for (Op& op : backward_) op.primitive.execute(stream_, op.arguments);
    stream_.wait();
  }

 private:
  struct Op {
    dnnl::primitive primitive;
    std::vector<std::pair<int, memory::desc>> operands;
    std::vector<std::size_t> offsets;
    std::unordered_map<int, memory> arguments;
  };

  // Its operands lie in memory of their own: no layer finds its input in a cache by luck.
  void add_op(std::vector<Op>& ops, const dnnl::primitive& primitive,
              std::vector<std::pair<int, memory::desc>> operands) {
    Op op{primitive, std::move(operands), {}, {}};
    for (const auto& [argument, desc] : op.operands) {
      op.offsets.push_back(total_);
      total_ += rounded(desc.get_size());
    }
    ops.push_back(std::move(op));
  }

  void add(const Layer& layer, memory::dim batch) {
    const auto any = memory::format_tag::any;
    const auto f32 = memory::data_type::f32;
    const memory::dim after = size_after(layer);
    const memory::dims strides = {layer.stride, layer.stride};
    const memory::dims padding = {layer.kernel / 2, layer.kernel / 2};
    const memory::desc src({batch, layer.in, layer.size, layer.size}, f32, any);
    const memory::desc weights({layer.out, layer.in, layer.kernel, layer.kernel}, f32, any);
    const memory::desc dst({batch, layer.out, after, after}, f32, any);
    const auto direct = algorithm::convolution_direct;

    const dnnl::convolution_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, direct, src, weights, dst, strides, padding, padding},
        engine_);
    add_op(forward_, dnnl::convolution_forward(forward),
           {{DNNL_ARG_SRC, forward.src_desc()},
            {DNNL_ARG_WEIGHTS, forward.weights_desc()},
            {DNNL_ARG_DST, forward.dst_desc()}});
    if (layer.in != 3) {
      const dnnl::convolution_backward_data::primitive_desc data(
          {direct, src, weights, dst, strides, padding, padding}, engine_, forward);
      add_op(backward_, dnnl::convolution_backward_data(data),
             {{DNNL_ARG_DIFF_SRC, data.diff_src_desc()},
              {DNNL_ARG_WEIGHTS, data.weights_desc()},
              {DNNL_ARG_DIFF_DST, data.diff_dst_desc()}});
    }
    const dnnl::convolution_backward_weights::primitive_desc gradient(
        {direct, src, weights, dst, strides, padding, padding}, engine_, forward);
    add_op(backward_, dnnl::convolution_backward_weights(gradient),
           {{DNNL_ARG_SRC, gradient.src_desc()},
            {DNNL_ARG_DIFF_WEIGHTS, gradient.diff_weights_desc()},
            {DNNL_ARG_DIFF_DST, gradient.diff_dst_desc()}});
  }

  void place(Op& op, std::span<std::byte> bytes) {
    for (std::size_t k = 0; k < op.operands.size(); ++k) {
      const auto& [argument, desc] = op.operands[k];
      op.arguments.emplace(argument, memory(desc, engine_, &bytes[op.offsets[k]]));
    }
  }

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::size_t total_ = 0;
  std::vector<Op> forward_;
  std::vector<Op> backward_;
};

memory::dim number(std::string_view text) {
  memory::dim value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1) {
    throw std::runtime_error("not a number from 1 on: " + std::string(text));
  }
  return value;
}

void run(std::span<char*> arguments) {
  if (arguments.size() != 4) throw std::runtime_error("arguments: BATCH IMAGE STEPS WARMUP");
  const memory::dim batch = number(arguments[0]);
  const memory::dim steps = number(arguments[2]);
  Convolutions convolutions(batch, number(arguments[1]));
  for (memory::dim k = number(arguments[3]); k > 0; --k) convolutions.step();
  const auto start = std::chrono::steady_clock::now();
  for (memory::dim k = 0; k < steps; ++k) convolutions.step();
  const double wall_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("{\"samples_per_s\":%.6f}\n", static_cast<double>(batch * steps) / wall_s);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    run(std::span(arguments + 1, static_cast<std::size_t>(count > 0 ? count - 1 : 0)));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ceiling_convolutions: %s\n", error.what());
    return 1;
  }
  return 0;
}
