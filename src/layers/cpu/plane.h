// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "layers/cpu/layout.h"

namespace annulus::cpu {

// A piece of one image's group of channels as rows of lanes: what vector loops run over.
struct Rows {
  std::int64_t offset = 0;  // from the start of the group in the image
  std::int64_t count = 0;
  std::int64_t stride = 0;
  int lanes = 1;
};

// The rows of a group: one piece, or two where a plain channel is cut into rows of 16 neighbouring
// positions and a shorter last row. In the plain layout all lanes belong to one channel.
struct PlaneRows {
  std::array<Rows, 2> pieces;
  int used = 1;
  bool one_channel = false;

  const Rows* begin() const { return pieces.data(); }
  const Rows* end() const { return pieces.data() + used; }
};

inline PlaneRows rows_of(const ChannelView& view, std::int64_t group) {
  PlaneRows rows;
  if (view.lanes > 1) {
    rows.pieces[0] = {0, view.positions, view.position_stride, view.memory_lanes(group)};
    return rows;
  }
  constexpr int lanes = ChannelView::max_lanes;
  const std::int64_t whole = view.positions / lanes;
  const int rest = static_cast<int>(view.positions % lanes);
  rows.one_channel = true;
  rows.used = 0;
  if (whole > 0) rows.pieces[rows.used++] = {0, whole, lanes, lanes};
  if (rest > 0) rows.pieces[rows.used++] = {whole * lanes, 1, lanes, rest};
  return rows;
}

// One number for each lane of a row, from numbers of channels: `values` of the channel that the
// lane belongs to, 0 for lanes past the last channel.
using LaneValues = std::array<float, ChannelView::max_lanes>;

inline LaneValues lane_values(const ChannelView& view, std::int64_t group, const float* values) {
  LaneValues lanes{};
  if (view.lanes == 1) {
    lanes.fill(values[group]);
    return lanes;
  }
  for (int lane = 0; lane < view.channel_lanes(group); ++lane) {
    lanes[lane] = values[group * view.lanes + lane];
  }
  return lanes;
}

}  // namespace annulus::cpu
