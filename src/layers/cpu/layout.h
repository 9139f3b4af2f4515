// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>

#include "core/shape.h"
#include "layers/cpu/dnnl.h"
#include "layers/ops.h"

namespace annulus::cpu {

// The layouts that values of this backend have, all of them. Whoever lets oneDNN choose keeps its
// choice where it is one of these.
enum class Format : std::uint8_t {
  plain,          // N, C, H, W
  channels_last,  // N, H, W, C
  blocked4,       // N, C / B, H, W, B: channels padded with zeros to a multiple of B
  blocked8,
  blocked16,
};

// Channels that a format keeps side by side in padded blocks; 0 where it has no blocks.
int block_of(Format format);

class CpuLayout final : public Layout {
 public:
  CpuLayout(const Shape& shape, Format format);
  std::size_t bytes() const override { return bytes_; }
  Format format() const { return format_; }
  const Desc& desc() const { return desc_; }

 private:
  Format format_;
  Desc desc_;
  std::size_t bytes_;
};

ValueType make_value(const Shape& shape, Format format);
Format format_of(const ValueType& value);
const Desc& desc_of(const ValueType& value);
// The format of a descriptor, or none of ours.
std::optional<Format> format_of(const Desc& desc);
// Whether the two formats put values of that shape at the same addresses.
bool same_memory(const Shape& shape, Format a, Format b);

// A value (N, C, spatial...) as images of groups of up to 16 channels. In each group the channels
// lie side by side, `lanes` of them; positions (H times W) are `position_stride` apart. Strides in
// elements.
struct ChannelView {
  static constexpr int max_lanes = 16;

  std::int64_t images = 0;
  std::int64_t channels = 0;
  std::int64_t groups = 0;
  std::int64_t positions = 0;
  int lanes = 1;
  bool padded = false;  // all lanes of the last group are in memory, past the last channel as zeros
  std::int64_t image_stride = 0;
  std::int64_t group_stride = 0;
  std::int64_t position_stride = 1;

  std::int64_t offset(std::int64_t image, std::int64_t group) const {
    return image * image_stride + group * group_stride;
  }
  std::int64_t channel_offset(std::int64_t image, std::int64_t channel) const {
    return offset(image, channel / lanes) + channel % lanes;
  }
  // Lanes of a group that are channels, and those that are in memory.
  int channel_lanes(std::int64_t group) const {
    const std::int64_t left = channels - group * lanes;
    return left < lanes ? static_cast<int>(left) : lanes;
  }
  int memory_lanes(std::int64_t group) const { return padded ? lanes : channel_lanes(group); }
};

// Channels of one position lie side by side in the plain layout too, and are joined into lanes
// unless `join` is false (for those who walk planes of two sizes alike).
ChannelView channel_view(const Shape& shape, Format format, bool join = true);
inline ChannelView channel_view(const ValueType& value) {
  return channel_view(value.shape, format_of(value));
}

// Sets the channels that only pad the last group to zero, as every operation must leave them.
void clear_padding(const ChannelView& view, float* values);

// Calls f with the number of lanes as a constant, 0 standing for any other number.
template <class F>
void with_lanes(int lanes, F&& f) {
  switch (lanes) {
    case 1:
      return f(std::integral_constant<int, 1>{});
    case 8:
      return f(std::integral_constant<int, 8>{});
    case 16:
      return f(std::integral_constant<int, 16>{});
    default:
      return f(std::integral_constant<int, 0>{});
  }
}

}  // namespace annulus::cpu
