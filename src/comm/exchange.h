// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/arithmetic.h"
#include "comm/group.h"
#include "comm/sum_tree.h"
#include "core/buffer.h"

namespace annulus {

// Combines equal vectors of some ranks by messages, always along the same tree, so that all get the
// same bits. Used on the communication thread.
//
// Where the tree joins blocks of 1, 2, 4, ... members in pairs: recursive halving, then doubling
// (R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in
// MPICH", 2005), nearest partners first. Else each member sums one slice from all, in two rounds.
// Either way a member sends 2 (n-1)/n of the vector.
class Exchange {
 public:
  // `order`'s sources are members; those it does not use have nothing to give.
  Exchange(Group& group, std::vector<int> members, int me, SumOrder order, bool pairs);

  // Makes room for vectors of `bytes`, so that no call allocates.
  void reserve(std::int64_t bytes);
  // In place.
  void all_reduce(const Task& task, const Arithmetic& arithmetic, std::span<std::byte> data);
  // `data` has a slice for each member, all of the size of `slice`, which gets the own one's sum.
  void reduce_scatter(const Task& task, const Arithmetic& arithmetic, std::span<std::byte> data,
                      std::span<std::byte> slice);

 private:
  void halve_and_double(const Task& task, const Arithmetic& arithmetic, std::span<std::byte> data);
  // Sums all members' part of `data` that `mine` names into `to`, and sends each other member its
  // part.
  template <class PartOf>
  void sum_slice(const Task& task, const Arithmetic& arithmetic, std::span<std::byte> data,
                 PartOf&& part_of, std::byte* to);

  int size() const { return static_cast<int>(members_.size()); }
  int member(int index) const { return members_[static_cast<std::size_t>(index)]; }

  Group& group_;
  std::vector<int> members_;
  int me_;
  SumOrder order_;
  bool pairs_;
  Buffer scratch_;
  std::vector<const std::byte*> inputs_;
};

// The bytes of `root` go to all ranks: a binomial tree.
void broadcast(Group& group, const Task& task, std::span<std::byte> data, int root);

// Each rank's bytes go to all, in the order of ranks: a ring.
void all_gather(Group& group, const Task& task, std::span<const std::byte> mine,
                std::span<std::byte> all);

}  // namespace annulus
