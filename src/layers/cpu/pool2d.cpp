// SPDX-License-Identifier: Apache-2.0
// Own code: oneDNN's pooling has no ceil mode and hides NaN in a window.
#include <algorithm>

#include "core/cpu/parallel.h"
#include "layers/cpu/lanes.h"
#include "layers/cpu/make_ops.h"

namespace annulus::cpu {
namespace {

constexpr int max_lanes = ChannelView::max_lanes;

// A window along one axis, cut to the input: [begin, end), and `before` elements of the whole
// window before it; `padded` counts what lies in the padded input.
struct Window {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t first = 0;  // where the whole window begins; negative in the padding
  std::int64_t padded = 0;
};

Window window_of(std::int64_t out, std::int64_t kernel, std::int64_t stride, std::int64_t low,
                 std::int64_t high, std::int64_t extent) {
  Window w;
  w.first = out * stride - low;
  w.begin = std::max<std::int64_t>(w.first, 0);
  w.end = std::min(w.first + kernel, extent);
  w.padded = std::min(w.first + kernel, extent + high) - w.first;
  return w;
}

struct Pooling {
  Pool2dDesc desc;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t stride_in = 1;   // between neighbours in a row of the input
  std::int64_t stride_out = 1;  // of the output

  Window rows(std::int64_t h) const {
    return window_of(h, desc.kernel.h, desc.stride.h, desc.padding.top, desc.padding.bottom,
                     height);
  }
  Window columns(std::int64_t w) const {
    return window_of(w, desc.kernel.w, desc.stride.w, desc.padding.left, desc.padding.right, width);
  }
  std::int64_t in(std::int64_t h, std::int64_t w) const { return (h * width + w) * stride_in; }
  float divisor(const Window& h, const Window& w) const {
    const std::int64_t count =
        desc.count_padding ? h.padded * w.padded : (h.end - h.begin) * (w.end - w.begin);
    return static_cast<float>(count);
  }
  // Calls f(rows, columns, offset) for each element of the output plane.
  template <class F>
  void for_each_output(const F& f) const {
    std::int64_t offset = 0;
    for (std::int64_t h = 0; h < desc.output.h; ++h) {
      for (std::int64_t w = 0; w < desc.output.w; ++w) {
        f(rows(h), columns(w), offset);
        offset += stride_out;
      }
    }
  }
};

// `where` gets the index of the maximum in the whole window, row by row; null: not wanted.
template <int L, class Index>
void max_plane(const Pooling& pool, const float* x, float* y, Index* where, int lanes) {
  pool.for_each_output([&](const Window& rows, const Window& columns, std::int64_t offset) {
    const auto index_of = [&](std::int64_t h, std::int64_t w) {
      return static_cast<std::int32_t>((h - rows.first) * pool.desc.kernel.w + w - columns.first);
    };
    auto best = Lanes<L>::load(x + pool.in(rows.begin, columns.begin), lanes);
    typename Lanes<L>::Indices index(index_of(rows.begin, columns.begin));
    for (std::int64_t h = rows.begin; h < rows.end; ++h) {
      for (std::int64_t w = columns.begin; w < columns.end; ++w) {
        best.take_greater(Lanes<L>::load(x + pool.in(h, w), lanes), index, index_of(h, w));
      }
    }
    best.store(y + offset, lanes);
    if (where != nullptr) index.store(where + offset, lanes);
  });
}

template <int L, class Index>
void max_gradient_plane(const Pooling& pool, const float* dy, const Index* where, float* dx,
                        int lanes) {
  const int n = L == 0 ? lanes : L;
  const std::int64_t kernel_w = pool.desc.kernel.w;
  pool.for_each_output([&](const Window& rows, const Window& columns, std::int64_t offset) {
    for (int l = 0; l < n; ++l) {
      const std::int64_t index = where[offset + l];
      const std::int64_t h = rows.first + index / kernel_w;
      const std::int64_t w = columns.first + index % kernel_w;
      dx[pool.in(h, w) + l] += dy[offset + l];
    }
  });
}

template <int L>
void average_plane(const Pooling& pool, const float* x, float* y, int lanes) {
  const int n = L == 0 ? lanes : L;
  pool.for_each_output([&](const Window& rows, const Window& columns, std::int64_t offset) {
    float total[max_lanes] = {};
    for (std::int64_t h = rows.begin; h < rows.end; ++h) {
      // Row sums first: large windows (global pooling) would lose digits in one long sum.
      float sum[max_lanes] = {};
      for (std::int64_t w = columns.begin; w < columns.end; ++w) {
        const float* from = x + pool.in(h, w);
        for (int l = 0; l < n; ++l) sum[l] += from[l];
      }
      for (int l = 0; l < n; ++l) total[l] += sum[l];
    }
    const float divisor = pool.divisor(rows, columns);
    for (int l = 0; l < n; ++l) y[offset + l] = total[l] / divisor;
  });
}

template <int L>
void average_gradient_plane(const Pooling& pool, const float* dy, float* dx, int lanes) {
  const int n = L == 0 ? lanes : L;
  pool.for_each_output([&](const Window& rows, const Window& columns, std::int64_t offset) {
    const float divisor = pool.divisor(rows, columns);
    float share[max_lanes];
    for (int l = 0; l < n; ++l) share[l] = dy[offset + l] / divisor;
    for (std::int64_t h = rows.begin; h < rows.end; ++h) {
      for (std::int64_t w = columns.begin; w < columns.end; ++w) {
        float* to = dx + pool.in(h, w);
        for (int l = 0; l < n; ++l) to[l] += share[l];
      }
    }
  });
}

class Pool2d final : public CpuOp {
 public:
  Pool2d(Context& context, const OpRequest& request, const Pool2dDesc& desc)
      : CpuOp(context, request,
              make_value({request.inputs[0].shape[0], request.inputs[0].shape[1], desc.output.h,
                          desc.output.w},
                         format_of(request.inputs[0]))),
        in_(channel_view(request.inputs[0].shape, format_of(request.inputs[0]), false)),
        out_(channel_view(output_.shape, format_of(output_), false)) {
    const Shape& shape = request.inputs[0].shape;
    pool_ = {desc, shape[2], shape[3], in_.position_stride, out_.position_stride};
    wide_ = desc.kernel.h * desc.kernel.w > 256;
    if (training() && desc.kind == PoolKind::max) {
      const std::size_t elements = output_.bytes() / sizeof(float);
      memory_.saved = elements * (wide_ ? sizeof(std::int32_t) : sizeof(std::uint8_t));
    }
  }

  void forward(const ForwardCall& call) override {
    for_each_plane([&](auto lanes, std::int64_t in, std::int64_t out, int n) {
      const float* x = call.inputs[0] + in;
      float* y = call.output + out;
      if (pool_.desc.kind == PoolKind::average) {
        average_plane<lanes()>(pool_, x, y, n);
      } else if (wide_) {
        max_plane<lanes()>(pool_, x, y, saved<std::int32_t>(call.saved, out), n);
      } else {
        max_plane<lanes()>(pool_, x, y, saved<std::uint8_t>(call.saved, out), n);
      }
    });
  }

  void backward(const BackwardCall& call) override {
    if (!wants_gradient(0)) return;
    for_each_plane([&](auto lanes, std::int64_t in, std::int64_t out, int n) {
      float* dx = call.input_gradients[0] + in;
      const float* dy = call.output_gradient + out;
      clear(dx, n);
      if (pool_.desc.kind == PoolKind::average) {
        average_gradient_plane<lanes()>(pool_, dy, dx, n);
      } else if (wide_) {
        max_gradient_plane<lanes()>(pool_, dy, saved<const std::int32_t>(call.saved, out), dx, n);
      } else {
        max_gradient_plane<lanes()>(pool_, dy, saved<const std::uint8_t>(call.saved, out), dx, n);
      }
    });
  }

 private:
  template <class Index, class Byte>
  static Index* saved(Byte* memory, std::int64_t offset) {
    return memory == nullptr ? nullptr : reinterpret_cast<Index*>(memory) + offset;
  }

  // Calls f(lanes as a constant, offset in, offset out, lanes) for each image's group of channels.
  template <class F>
  void for_each_plane(const F& f) const {
    with_lanes(in_.lanes, [&](auto lanes) {
      parallel_for(in_.images * in_.groups, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t image = i / in_.groups;
          const std::int64_t group = i % in_.groups;
          const int n = in_.memory_lanes(group);
          const std::int64_t in = in_.offset(image, group);
          const std::int64_t out = out_.offset(image, group);
          if (n == in_.lanes) {
            f(lanes, in, out, n);
          } else {
            f(std::integral_constant<int, 0>{}, in, out, n);
          }
        }
      });
    });
  }

  void clear(float* plane, int lanes) const {
    for (std::int64_t p = 0; p < in_.positions; ++p) {
      std::fill_n(plane + p * in_.position_stride, lanes, 0.0F);
    }
  }

  ChannelView in_;
  ChannelView out_;
  Pooling pool_;
  bool wide_ = false;
};

}  // namespace

std::unique_ptr<Op> make_pool2d(Context& context, const OpRequest& request,
                                const Pool2dDesc& desc) {
  return std::make_unique<Pool2d>(context, request, desc);
}

}  // namespace annulus::cpu
