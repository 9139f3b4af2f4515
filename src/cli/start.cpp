// SPDX-License-Identifier: Apache-2.0
#include "cli/start.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "comm/agree.h"
#include "core/error.h"
#include "io/checkpoint.h"
#include "io/json.h"
#include "layers/cpu_isa.h"
#include "topology/cpu_placement.h"

namespace annulus {
namespace {

// "0,1,"
std::string join(const std::vector<int>& numbers) {
  std::string text;
  for (int number : numbers) fmt::format_to(std::back_inserter(text), "{},", number);
  return text;
}

std::vector<int> split_numbers(const std::string& text) {
  std::vector<int> numbers;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    int number = 0;
    at = std::from_chars(at, end, number).ptr;
    numbers.push_back(number);
    ++at;  // the comma
  }
  return numbers;
}

// The masks of the ranks of this node, in the order of local ranks.
std::vector<std::vector<int>> local_masks(Communicator& comm) {
  const std::vector<std::string> all = gather_texts(comm, join(allowed_cores()));
  const auto first = static_cast<std::size_t>(comm.rank() - comm.local_rank());
  std::vector<std::vector<int>> masks;
  masks.reserve(static_cast<std::size_t>(comm.local_size()));
  for (int local = 0; local < comm.local_size(); ++local) {
    masks.push_back(split_numbers(all[first + static_cast<std::size_t>(local)]));
  }
  return masks;
}

Placement place(const RunSpec& spec, std::int64_t threads, Communicator& comm, Log& log) {
  const std::vector<std::vector<int>> masks = local_masks(comm);
  CpuPlan plan;
  agree(comm, [&] { plan = plan_cpu_placement(masks, static_cast<int>(threads)); });
  for (const std::string& warning : plan.warnings) log.warning("{}", warning);
  Placement placement = plan.ranks[static_cast<std::size_t>(comm.local_rank())];
  if (spec.placement == "off") placement.cores.clear();
  return placement;
}

// All ranks compute with the lowest instruction set among their hosts, so that equal work gives
// equal bits wherever it runs.
std::string settle_isa(const std::optional<Settled>& kept, Communicator& comm) {
  const auto lowest = static_cast<int>(-agree_on_largest(comm, -cpu_isa_level(cpu_isa())));
  const int wanted = kept ? cpu_isa_level(kept->isa) : lowest;
  if (lowest < wanted) {
    throw Error(ErrorKind::resource,
                "a processor of this job cannot do what the checkpoint was computed with")
        .values("instruction set " + kept->isa, cpu_isa_name(lowest))
        .agreed(0, comm.hosts()[0]);
  }
  std::string isa = cpu_isa_name(wanted);
  if (isa != cpu_isa()) limit_cpu_isa(isa);
  return isa;
}

void refuse_change(const RunConfig& config, const Communicator& comm, const char* key,
                   std::int64_t kept, std::int64_t wanted) {
  if (wanted == 0 || wanted == kept) return;
  throw Error(
      ErrorKind::usage,
      fmt::format("'{}' belongs to the arithmetic of a run and cannot change when it goes on", key))
      .values(fmt::format("{} as in the checkpoint", kept), std::to_string(wanted))
      .at(place_of(config.value, key))
      .agreed(0, comm.hosts()[0]);
}

DeviceKind device_kind(const RunSpec& spec, Log& log) {
  std::string reason;
  if (spec.device == "cuda") return DeviceKind::cuda;
  if (spec.device == "auto" && cuda_available(reason)) return DeviceKind::cuda;
  if (spec.device == "auto") log.debug("no GPU is used: {}", reason);
  return DeviceKind::cpu;
}

std::string placement_json(const Placement& placement, const Communicator& comm) {
  const std::vector<std::int64_t> cores(placement.cores.begin(), placement.cores.end());
  return JsonObject()
      .set("rank", comm.rank())
      .set("host", comm.hosts()[static_cast<std::size_t>(comm.node())])
      .set("local_rank", placement.local_rank)
      .set("cores", std::span<const std::int64_t>(cores))
      .set("threads", placement.threads)
      .text();
}

}  // namespace

Start start_job(RunConfig& config, const std::optional<Settled>& kept, Communicator& comm,
                Log& log) {
  comm.set_timeout(config.spec.comm.timeout_s);
  if (kept) {
    refuse_change(config, comm, "batch.shards", kept->shards, config.spec.batch.shards);
    refuse_change(config, comm, "threads", kept->threads, config.spec.threads);
  }
  Start start;
  start.placement = place(config.spec, kept ? kept->threads : config.spec.threads, comm, log);
  start.settled.shards = kept                           ? kept->shards
                         : config.spec.batch.shards > 0 ? config.spec.batch.shards
                                                        : comm.size();
  start.settled.threads = -agree_on_largest(comm, -start.placement.threads);
  start.placement.threads = static_cast<int>(start.settled.threads);
  start.settled.isa = settle_isa(kept, comm);
  config.spec.batch.shards = start.settled.shards;
  config.spec.threads = start.settled.threads;

  apply(start.placement);
  start.placements = gather_texts(comm, placement_json(start.placement, comm));
  agree(comm, [&] { start.device = make_device(device_kind(config.spec, log), start.placement); });
  return start;
}

RunPlan agree_on_plan(const RunConfig& config, const DataSets& data, Communicator& comm, Log& log) {
  std::optional<RunPlan> plan;
  agree(comm, [&] {
    plan.emplace(plan_run(config.spec, *config.graph, config.value, data.train->size()));
  });
  for (const std::string& doubt : doubts(*plan, comm.size())) log.warning("{}", doubt);
  return *plan;
}

}  // namespace annulus
