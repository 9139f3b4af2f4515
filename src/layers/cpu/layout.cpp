// SPDX-License-Identifier: Apache-2.0
#include "layers/cpu/layout.h"

#include <algorithm>

#include "core/error.h"

namespace annulus::cpu {
namespace {

std::int64_t round_up(std::int64_t count, std::int64_t block) {
  return (count + block - 1) / block * block;
}

std::int64_t positions_of(const Shape& shape) {
  return shape.rank() > 2 ? shape.elements_from(2) : 1;
}

Desc channels_last_desc(const Shape& shape) {
  Dims strides(shape.rank(), 1);
  std::int64_t step = shape[1];
  for (std::size_t axis = shape.rank() - 1; axis >= 2; --axis) {
    strides[axis] = step;
    step *= shape[axis];
  }
  strides[0] = step;
  return {dims_of(shape), dnnl::memory::data_type::f32, strides};
}

Desc make_desc(const Shape& shape, Format format) {
  using Tag = dnnl::memory::format_tag;
  if (format == Format::plain) return plain_desc(dims_of(shape));
  if (format == Format::channels_last) return channels_last_desc(shape);
  require_equal(std::size_t{4}, shape.rank(), "axes of a blocked layout");
  const Tag tag = format == Format::blocked4   ? Tag::nChw4c
                  : format == Format::blocked8 ? Tag::nChw8c
                                               : Tag::nChw16c;
  return {dims_of(shape), dnnl::memory::data_type::f32, tag};
}

// Strides of an axis of one element say nothing.
bool same_walk(const Blocking& a, const Blocking& b) {
  if (a.dims != b.dims || a.padded != b.padded || a.inner_blocks != b.inner_blocks ||
      a.inner_axes != b.inner_axes) {
    return false;
  }
  for (std::size_t axis = 0; axis < a.dims.size(); ++axis) {
    const bool single = a.padded[axis] == 1 || (axis == 1 && !a.inner_blocks.empty() &&
                                                a.padded[axis] == a.inner_blocks[0]);
    if (!single && a.strides[axis] != b.strides[axis]) return false;
  }
  return true;
}

bool like_plain(const Shape& shape, Format format) {
  if (format == Format::plain) return true;
  if (format == Format::channels_last) return positions_of(shape) == 1 || shape[1] == 1;
  const int block = block_of(format);
  return block > 0 && positions_of(shape) == 1 && shape[1] % block == 0;
}

}  // namespace

int block_of(Format format) {
  switch (format) {
    case Format::blocked4:
      return 4;
    case Format::blocked8:
      return 8;
    case Format::blocked16:
      return 16;
    default:
      return 0;
  }
}

CpuLayout::CpuLayout(const Shape& shape, Format format)
    : format_(format), desc_(make_desc(shape, format)), bytes_(desc_.get_size()) {}

ValueType make_value(const Shape& shape, Format format) {
  return {shape, std::make_shared<CpuLayout>(shape, format)};
}

Format format_of(const ValueType& value) {
  return static_cast<const CpuLayout&>(*value.layout).format();
}

const Desc& desc_of(const ValueType& value) {
  return static_cast<const CpuLayout&>(*value.layout).desc();
}

std::optional<Format> format_of(const Desc& desc) {
  const Blocking found = blocking_of(desc);
  if (found.dims.empty()) return std::nullopt;
  const Shape shape{std::span<const std::int64_t>(found.dims)};
  for (Format format : {Format::plain, Format::channels_last, Format::blocked4, Format::blocked8,
                        Format::blocked16}) {
    const std::size_t rank = shape.rank();
    if (format == Format::channels_last ? rank < 3 : format != Format::plain && rank != 4) continue;
    if (same_walk(found, blocking_of(make_desc(shape, format)))) return format;
  }
  return std::nullopt;
}

bool same_memory(const Shape& shape, Format a, Format b) {
  return a == b || (like_plain(shape, a) && like_plain(shape, b));
}

ChannelView channel_view(const Shape& shape, Format format, bool join) {
  ChannelView view;
  view.images = shape[0];
  view.channels = shape.rank() > 1 ? shape[1] : 1;
  view.positions = positions_of(shape);
  const int block = block_of(format);
  const bool side_by_side =
      format == Format::channels_last || (format == Format::plain && join && view.positions == 1);
  view.padded = block > 0;
  view.lanes = block > 0 ? block : side_by_side ? ChannelView::max_lanes : 1;
  view.groups = (view.channels + view.lanes - 1) / view.lanes;
  view.position_stride = side_by_side ? view.channels : view.lanes;
  view.group_stride = side_by_side ? view.lanes : view.positions * view.lanes;
  view.image_stride = view.positions * (block > 0 ? round_up(view.channels, block) : view.channels);
  return view;
}

void clear_padding(const ChannelView& view, float* values) {
  const std::int64_t last = view.groups - 1;
  const int first = view.channel_lanes(last);
  const int end = view.memory_lanes(last);
  if (first == end) return;
  for (std::int64_t image = 0; image < view.images; ++image) {
    float* plane = values + view.offset(image, last);
    for (std::int64_t p = 0; p < view.positions; ++p) {
      std::fill(plane + p * view.position_stride + first, plane + p * view.position_stride + end,
                0.0F);
    }
  }
}

}  // namespace annulus::cpu
