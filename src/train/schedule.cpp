// SPDX-License-Identifier: Apache-2.0
#include "train/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace annulus {
namespace {

// In the order of Schedule::Curve.
constexpr std::array curve_names = {"constant", "step", "multistep", "polynomial", "cosine"};

// A key that only some kinds of schedule read.
struct KindKey {
  const char* key;
  std::vector<std::string> kinds;
};

std::vector<KindKey> kind_keys() {
  return {{"every", {"step"}},
          {"every_epochs", {"step"}},
          {"gamma", {"step", "multistep"}},
          {"milestones", {"multistep"}},
          {"milestones_epochs", {"multistep"}},
          {"power", {"polynomial"}},
          {"end_lr", {"polynomial", "cosine"}}};
}

void warn_of_unused(const ScheduleSpec& spec, const Value& table, Problems& problems) {
  for (const auto& [key, kinds] : kind_keys()) {
    const bool used = std::find(kinds.begin(), kinds.end(), spec.kind) != kinds.end();
    if (!used && table.find(key) != nullptr) {
      problems.warn(
          place_of(table, key),
          fmt::format("optimizer.schedule.{} has no effect with kind \"{}\"", key, spec.kind));
    }
  }
}

template <class T>
bool rises(const std::vector<T>& numbers) {
  return std::adjacent_find(numbers.begin(), numbers.end(), std::greater_equal<T>()) ==
         numbers.end();
}

std::int64_t to_updates(double epochs, std::int64_t steps_per_epoch) {
  const double updates = std::round(epochs * static_cast<double>(steps_per_epoch));
  require(updates < 0x1p62, ErrorKind::usage,
          "optimizer.schedule: {} epochs of {} updates are more than 2^62 updates", epochs,
          steps_per_epoch);
  return static_cast<std::int64_t>(updates);
}

}  // namespace

Schema describe(ScheduleSpec& spec) {
  Schema schema;
  schema.key("kind", &spec.kind, "curve of the learning rate after warm-up")
      .one_of({curve_names.begin(), curve_names.end()});
  schema
      .key("warmup", &spec.warmup,
           "updates of linear warm-up: update s of them, from 0, uses lr (s + 1) / warmup")
      .at_least(0);
  schema.key("warmup_epochs", &spec.warmup_epochs, "the same in epochs").at_least(0);
  schema.key("every", &spec.every, "step: updates between two drops").at_least(1);
  schema.key("every_epochs", &spec.every_epochs, "the same in epochs").above(0);
  schema.key("gamma", &spec.gamma, "step and multistep: factor of a drop")
      .above(0)
      .unusual_above(1);
  schema.key("milestones", &spec.milestones, "multistep: updates from which on the rate is lower")
      .at_least(1);
  schema.key("milestones_epochs", &spec.milestones_epochs, "the same in epochs").above(0);
  schema.key("power", &spec.power, "polynomial: exponent of the curve").above(0);
  schema.key("end_lr", &spec.end_lr, "polynomial and cosine: rate at the end of the run")
      .at_least(0);
  return schema;
}

void check(const ScheduleSpec& spec, const Value& table, Problems& problems) {
  const auto wrong = [&](const char* key, const std::string& message) {
    problems.add(place_of(table, key), "optimizer.schedule." + message);
  };
  if (spec.warmup > 0 && spec.warmup_epochs > 0)
    wrong("warmup_epochs", "warmup and warmup_epochs are both given; keep one");
  if (spec.every > 0 && spec.every_epochs > 0)
    wrong("every_epochs", "every and every_epochs are both given; keep one");
  if (!spec.milestones.empty() && !spec.milestones_epochs.empty())
    wrong("milestones_epochs", "milestones and milestones_epochs are both given; keep one");
  if (!rises(spec.milestones)) wrong("milestones", "milestones must increase");
  if (!rises(spec.milestones_epochs)) wrong("milestones_epochs", "milestones_epochs must increase");
  if (spec.kind == "step" && spec.every == 0 && spec.every_epochs == 0)
    wrong("kind", "every or every_epochs is needed with kind \"step\"");
  if (spec.kind == "multistep" && spec.milestones.empty() && spec.milestones_epochs.empty())
    wrong("kind", "milestones or milestones_epochs is needed with kind \"multistep\"");
  warn_of_unused(spec, table, problems);
}

Schedule::Curve Schedule::curve_of(const std::string& kind) {
  const auto* const found = std::find(curve_names.begin(), curve_names.end(), kind);
  require(found != curve_names.end(), ErrorKind::usage, "optimizer.schedule.kind: unknown \"{}\"",
          kind);
  return static_cast<Curve>(found - curve_names.begin());
}

Schedule::Schedule(const ScheduleSpec& spec, double base_lr, std::int64_t total,
                   std::int64_t steps_per_epoch)
    : spec_(spec), curve_(curve_of(spec.kind)), base_(base_lr), total_(total) {
  Problems problems;
  check(spec, {}, problems);
  problems.throw_if_any();
  const auto updates = [&](std::int64_t given, double epochs) {
    return epochs > 0 ? to_updates(epochs, steps_per_epoch) : given;
  };
  warmup_ = updates(spec.warmup, spec.warmup_epochs);
  if (warmup_ > total) {
    throw Error(ErrorKind::usage, "optimizer.schedule: the warm-up is longer than the run")
        .values(fmt::format("at most {} updates", total), fmt::format("{}", warmup_));
  }
  // A part of an epoch may round to no update at all.
  every_ = std::max<std::int64_t>(1, updates(spec.every, spec.every_epochs));
  milestones_ = spec.milestones;
  for (double epochs : spec.milestones_epochs)
    milestones_.push_back(to_updates(epochs, steps_per_epoch));
}

std::int64_t Schedule::drops(std::int64_t step) const {
  if (curve_ == Curve::step) return step / every_;
  return std::upper_bound(milestones_.begin(), milestones_.end(), step) - milestones_.begin();
}

double Schedule::decay(std::int64_t step) const {
  const std::int64_t length = total_ - warmup_;
  const double left =
      length > 0 ? static_cast<double>(total_ - step) / static_cast<double>(length) : 0;
  if (curve_ == Curve::polynomial) return std::pow(left, spec_.power);
  return (1 + std::cos(std::numbers::pi * (1 - left))) / 2;
}

double Schedule::lr(std::int64_t step) const {
  // The quotient first: it is 1 at the end of warm-up, so that the rate is the base exactly.
  if (step < warmup_) return base_ * (static_cast<double>(step + 1) / static_cast<double>(warmup_));
  step = std::min(step, total_);
  switch (curve_) {
    case Curve::constant:
      return base_;
    case Curve::step:
    case Curve::multistep:
      return base_ * std::pow(spec_.gamma, static_cast<double>(drops(step)));
    case Curve::polynomial:
    case Curve::cosine:
      break;
  }
  const double weight = decay(step);
  return weight * base_ + (1 - weight) * spec_.end_lr;
}

}  // namespace annulus
