// SPDX-License-Identifier: Apache-2.0
// The step loop makes nothing new: no memory, no page of it, no primitive, no reorder beyond those
// of every step. A whole program of its own, alone and under mpirun, that stands in front of malloc
// and of oneDNN.
#include <cstdio>
#include <map>

#include <fmt/core.h>
#include <sys/resource.h>

#include "comm/job.h"
#include "config/config.h"
#include "io/data_file.h"
#include "support/dnnl_calls.h"
#include "support/process.h"
#include "support/process_allocations.h"
#include "train/session.h"

namespace annulus::testing {
namespace {

constexpr std::int64_t period = 4;  // steps an epoch: batches of 14, 14, 14 and 8
constexpr std::int64_t warmup_steps = 2 * period;
constexpr std::int64_t counted_steps = 5 * period;
constexpr std::size_t largest_allowed = 4096;  // bytes, of anybody

const char* const config_text = R"(
[data.train]
file = "FILE"
inputs = "train/images"
labels = "train/labels"
workers = 2
augment = { crop_padding = 2, flip = true }
[batch]
global = 14  # 50 samples: batches of 14, 14, 14 and 8
shards = 4
[optimizer]
kind = "adamw"
lr = 0.01
clip_norm = 1
[optimizer.schedule]
kind = "cosine"
warmup = 3
[train]
steps = 1000
[model]
input = [3, 12, 10]
classes = 5
layers = [
  { conv = 20, kernel = 3, padding = "same", bias = false, name = "a" },
  { batch_norm = true, relu = true, name = "a_bn" },
  { conv = 20, kernel = 3, padding = 1, groups = 20 },
  { batch_norm = true, add = "a_bn", relu = true },
  { max_pool = 2 },
  { dropout = 0.2 },
  { linear = 5 },
]
)";

// What some steps have made.
struct Work {
  std::vector<Allocation> allocations;
  DnnlCalls dnnl;
  std::int64_t page_faults = 0;
};

DnnlCalls operator-(const DnnlCalls& a, const DnnlCalls& b) {
  return {a.created - b.created, a.executed - b.executed, a.reorders - b.reorders};
}

// Pages that this process touched for the first time.
std::int64_t page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

Work work_of_steps(Communicator& comm, const std::string& file) {
  std::string text = config_text;
  text.replace(text.find("FILE"), 4, file);
  RunSpec spec;
  Problems problems;
  const Value config = parse_config(text, "test.toml");
  read_run_spec(config, spec, problems);
  const Graph graph(std::move(spec.model), problems);
  problems.throw_if_any();
  const auto device = make_device(DeviceKind::cpu, Placement{});
  Progress progress;
  DataSets data = open_data(spec, graph, true, comm, progress);
  const RunPlan plan = plan_run(spec, graph, config, data.train->size());
  Session session(spec, graph, std::move(data), plan, comm, *device, progress);
  session.start_at(0);
  std::int64_t next = 0;
  const auto run = [&](std::int64_t steps) {
    const DnnlCalls before = dnnl_calls();
    for (const std::int64_t end = next + steps; next < end; ++next) {
      session.step().run(next, next, false);
    }
    return dnnl_calls() - before;
  };
  run(warmup_steps - period);
  const DnnlCalls planned = run(period);
  Work work;
  start_noting();
  const std::int64_t faults_before = page_faults();
  work.dnnl = run(counted_steps);
  work.page_faults = page_faults() - faults_before;
  work.allocations = stop_noting();
  // Beyond what every epoch does.
  work.dnnl.executed -= counted_steps / period * planned.executed;
  work.dnnl.reorders -= counted_steps / period * planned.reorders;
  std::puts(fmt::format("rank {}: {} primitives an epoch, {} of them reorders", comm.rank(),
                        planned.executed, planned.reorders)
                .c_str());
  return work;
}

// Libraries whose allocations are theirs. The C++ library allocates for whoever calls it, so it
// counts as ours.
bool is_third_party(const std::string& library) {
  for (const char* name : {"libdnnl", "libhdf5", "libmpi", "libopen-", "libpmix", "mca_", "libgomp",
                           "libevent", "libc.so", "libz", "libsz", "ld-linux"}) {
    if (library.rfind(name, 0) == 0) return true;
  }
  return false;
}

int count_faults(const std::vector<Allocation>& allocations, int rank) {
  std::map<std::pair<std::string, std::size_t>, std::int64_t> groups;
  for (const Allocation& allocation : allocations) ++groups[{allocation.library, allocation.bytes}];
  int faults = 0;
  for (const auto& [group, count] : groups) {
    const auto& [library, bytes] = group;
    const bool fault = !is_third_party(library) || bytes > largest_allowed;
    faults += fault ? 1 : 0;
    std::puts(fmt::format("rank {}: {} times {} bytes in {} steps by {}{}", rank, count, bytes,
                          counted_steps, library, fault ? ": must not be" : "")
                  .c_str());
  }
  return faults;
}

int run_test() {
  Progress progress;
  const std::unique_ptr<Communicator> comm =
      join_job(progress, [](const Error& error) { std::puts(error.what()); });
  const TemporaryDirectory directory;  // each rank its own copy of the same data
  SyntheticFile data;
  data.samples = 50;
  data.shape = Shape{3, 12, 10};
  data.classes = 5;
  data.storage = Storage::compressed;
  write_synthetic_file(data, directory / "data.h5");
  const Work work = work_of_steps(*comm, directory / "data.h5");
  const int allocations = count_faults(work.allocations, comm->rank());
  std::puts(
      fmt::format("rank {}, in {} steps: {} allocations that should not be, {} page faults, {} "
                  "primitives created, {} executed and {} reorders beyond the plan",
                  comm->rank(), counted_steps, allocations, work.page_faults, work.dnnl.created,
                  work.dnnl.executed, work.dnnl.reorders)
          .c_str());
  const bool clean = allocations == 0 && work.page_faults == 0 && work.dnnl.created == 0 &&
                     work.dnnl.executed == 0 && work.dnnl.reorders == 0;
  return clean ? 0 : 1;
}

}  // namespace
}  // namespace annulus::testing

int main() {
  return annulus::testing::run_test();
}
