// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/gradient_reducer.h"
#include "core/tensor.h"

namespace annulus {

enum class ReduceOp { sum, min, max };

// The ranks of a job, as one of them sees them. Ranks are numbered by (node, local rank), so that
// neighbours share memory; rank 0 is the launcher's rank 0.
//
// Collectives: every rank calls the same one, in the same order, from its trainer's thread, with
// tensors of equal size and dtype; a mismatch is an Error (bug) with both values, where it can be
// seen. A call returns when its result is there, and throws Error (peer) when the deadline
// (comm.timeout_s) passes first. Sums are taken in the order of a fixed binary tree over ranks, so
// they do not depend on timing or on the launcher. Host tensors of f32, f64, i32, i64 and u8 (u8:
// not for sums). With one rank they return at once.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // This rank's node, counted in the order of ranks, and its place there.
  virtual int node() const = 0;
  virtual int local_rank() const = 0;
  virtual int local_size() const = 0;
  // Host name and number of ranks of each node. Pretended nodes (ANNULUS_NODES) share a host name.
  virtual const std::vector<std::string>& hosts() const = 0;
  virtual const std::vector<int>& ranks_by_node() const = 0;

  // In place: `data` becomes the sum (minimum, maximum) over all ranks.
  virtual void all_reduce(const TensorView& data, ReduceOp op) = 0;
  // `data` has size() equal slices; `slice` gets the sum of the rank()-th one. `data` is left
  // undefined.
  virtual void reduce_scatter(const TensorView& data, const TensorView& slice) = 0;
  // `all` has size() slices of the size of `mine`, in the order of ranks.
  virtual void all_gather(const TensorView& mine, const TensorView& all) = 0;
  virtual void broadcast(const TensorView& data, int root) = 0;
  virtual void barrier() = 0;
  // The ranks with the same colour, ordered by key, then rank. Collective.
  virtual std::unique_ptr<Communicator> split(int color, int key) = 0;

  // The deadline of every later wait, in seconds; 0: never. 300 at first. The same on every rank.
  virtual void set_timeout(double seconds) = 0;

  // The engine that sums gradients over all ranks while backward goes on. Collective. It must not
  // outlive the communicator; within one of its steps no other collective may be called.
  virtual std::unique_ptr<GradientReducer> make_reducer(const ReducerLayout& layout) = 0;

  // Bytes that this rank has sent to other nodes since the start.
  virtual std::int64_t bytes_between_hosts() const = 0;

  // Of ranks that fail apart from each other on one node, whether this is the first to ask: so that
  // one speaks for all that lost the same peer. No collective.
  virtual bool first_to_fail() = 0;
  // Ends the job, all ranks of it, with this exit code (a failure is never turned into 0). For
  // faults that the others do not know of; a decision they share ends by agree() instead.
  [[noreturn]] virtual void abort(int code) = 0;
};

// The host that a rank runs on.
inline const std::string& host_of(const Communicator& comm, int rank) {
  std::size_t node = 0;
  for (int end = comm.ranks_by_node()[0]; rank >= end; end += comm.ranks_by_node()[node]) ++node;
  return comm.hosts()[node];
}

}  // namespace annulus
