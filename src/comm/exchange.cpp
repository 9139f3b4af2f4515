// SPDX-License-Identifier: Apache-2.0
#include "comm/exchange.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace annulus {
namespace {

std::span<std::byte> cut(std::span<std::byte> data, Span64 part) {
  return data.subspan(static_cast<std::size_t>(part.begin), static_cast<std::size_t>(part.count()));
}

// The `index`-th of `parts` shares of a vector, in bytes.
Span64 share_in_bytes(std::span<const std::byte> data, std::int64_t element, int index, int parts) {
  const auto share = share_of(static_cast<std::int64_t>(data.size()) / element, index, parts);
  return {share.begin * element, share.end * element};
}

}  // namespace

Exchange::Exchange(Group& group, std::vector<int> members, int me, SumOrder order, bool pairs)
    : group_(group),
      members_(std::move(members)),
      me_(me),
      order_(std::move(order)),
      pairs_(pairs),
      inputs_(members_.size()) {}

// Halving receives at most half of the vector at once; a sum of slices, all slices but the own one.
void Exchange::reserve(std::int64_t bytes) {
  const auto largest_element = static_cast<std::int64_t>(sizeof(double));
  const auto need = static_cast<std::size_t>(bytes + largest_element * size());
  if (scratch_.bytes() < need) scratch_ = Buffer::host(need);
}

void Exchange::all_reduce(const Task& task, const Arithmetic& arithmetic,
                          std::span<std::byte> data) {
  if (pairs_) return halve_and_double(task, arithmetic, data);
  const auto part_of = [&](int index) {
    return share_in_bytes(data, arithmetic.element, index, size());
  };
  const auto mine = cut(data, part_of(me_));
  sum_slice(task, arithmetic, data, part_of, mine.data());
  for (int step = 1; step < size(); ++step) {
    const int other = (me_ + step) % size();
    group_.send(member(other), mine);
    group_.receive(member(other), cut(data, part_of(other)));
  }
  group_.finish_messages(task);
}

void Exchange::reduce_scatter(const Task& task, const Arithmetic& arithmetic,
                              std::span<std::byte> data, std::span<std::byte> slice) {
  const auto part_of = [&](int index) { return share_in_bytes(data, 1, index, size()); };
  sum_slice(task, arithmetic, data, part_of, slice.data());
}

template <class PartOf>
void Exchange::sum_slice(const Task& task, const Arithmetic& arithmetic, std::span<std::byte> data,
                         PartOf&& part_of, std::byte* to) {
  const auto mine = cut(data, part_of(me_));
  reserve(static_cast<std::int64_t>(mine.size()) * size());
  std::byte* place = scratch_.as<std::byte>();
  inputs_[static_cast<std::size_t>(me_)] = mine.data();
  for (int step = 1; step < size(); ++step) {
    const int to_member = (me_ + step) % size();
    const int from_member = (me_ + size() - step) % size();
    if (order_.uses(me_)) group_.send(member(to_member), cut(data, part_of(to_member)));
    if (!order_.uses(from_member)) continue;
    group_.receive(member(from_member), {place, mine.size()});
    inputs_[static_cast<std::size_t>(from_member)] = place;
    place += mine.size();
  }
  group_.finish_messages(task);
  order_.run(arithmetic, inputs_, to, static_cast<std::int64_t>(mine.size()) / arithmetic.element);
}

void Exchange::halve_and_double(const Task& task, const Arithmetic& arithmetic,
                                std::span<std::byte> data) {
  constexpr std::size_t most_levels = 31;
  std::array<Span64, most_levels> ranges{};  // what this member still held at each level
  const auto element = arithmetic.element;
  ranges[0] = {0, static_cast<std::int64_t>(data.size())};
  reserve(ranges[0].end);
  std::size_t level = 0;
  for (int distance = 1; distance < size(); distance *= 2, ++level) {
    const Span64 range = ranges[level];
    const std::int64_t middle = range.begin + range.count() / element / 2 * element;
    Span64 keep{range.begin, middle};
    Span64 give{middle, range.end};
    if ((me_ & distance) != 0) std::swap(keep, give);
    group_.send(member(me_ ^ distance), cut(data, give));
    group_.receive(member(me_ ^ distance),
                   cut({scratch_.as<std::byte>(), data.size()}, {0, keep.count()}));
    group_.finish_messages(task);
    std::byte* kept = cut(data, keep).data();
    arithmetic.combine(kept, kept, scratch_.as<std::byte>(), keep.count() / element);
    ranges[level + 1] = keep;
  }
  for (int distance = size() / 2; distance > 0; distance /= 2, --level) {
    const Span64 have = ranges[level];
    const Span64 range = ranges[level - 1];
    const bool lower = (me_ & distance) == 0;
    const Span64 lack = lower ? Span64{have.end, range.end} : Span64{range.begin, have.begin};
    group_.send(member(me_ ^ distance), cut(data, have));
    group_.receive(member(me_ ^ distance), cut(data, lack));
    group_.finish_messages(task);
  }
}

void broadcast(Group& group, const Task& task, std::span<std::byte> data, int root) {
  const int size = group.roster().size();
  const auto rank_of = [&](int place) { return (place + root) % size; };
  const int me = (group.roster().rank + size - root) % size;
  // The parent differs in the lowest set bit; children in the zeros below it.
  int bit = 1;
  while (bit < size && (me & bit) == 0) bit *= 2;
  if (me != 0) {
    group.receive(rank_of(me - bit), data);
    group.finish_messages(task);
  }
  for (bit /= 2; bit > 0; bit /= 2) {
    if (me + bit < size) group.send(rank_of(me + bit), data);
  }
  group.finish_messages(task);
}

void all_gather(Group& group, const Task& task, std::span<const std::byte> mine,
                std::span<std::byte> all) {
  const int size = group.roster().size();
  const int rank = group.roster().rank;
  const auto slice = [&](int of) {
    return all.subspan(static_cast<std::size_t>(of) * mine.size(), mine.size());
  };
  if (!mine.empty()) std::memmove(slice(rank).data(), mine.data(), mine.size());
  for (int step = 0; step < size - 1; ++step) {
    group.send((rank + 1) % size, slice((rank + size - step) % size));
    group.receive((rank + size - 1) % size, slice((rank + size - step - 1) % size));
    group.finish_messages(task);
  }
}

}  // namespace annulus
