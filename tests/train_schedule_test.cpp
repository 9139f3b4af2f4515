// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.h"
#include "train/batch_plan.h"
#include "train/optimizer.h"
#include "train/schedule.h"

namespace annulus {
namespace {

ScheduleSpec curve(const char* kind, std::int64_t warmup = 0) {
  ScheduleSpec spec;
  spec.kind = kind;
  spec.warmup = warmup;
  return spec;
}

void check_rates(const Schedule& schedule, const std::vector<double>& expected) {
  for (std::size_t s = 0; s < expected.size(); ++s) {
    CAPTURE(s);
    const double rate = schedule.lr(static_cast<std::int64_t>(s));
    CAPTURE(rate);
    CHECK(std::abs(rate - expected[s]) <= 1e-11 * expected[s]);
  }
}

std::vector<double> rates(const Schedule& schedule, std::int64_t count) {
  std::vector<double> list;
  for (std::int64_t s = 0; s < count; ++s) list.push_back(schedule.lr(s));
  return list;
}

}  // namespace

// The tables were computed apart from this code, from the formulas in schedule.h.

TEST_CASE("a constant rate stays, also after the end") {
  check_rates(Schedule(curve("constant"), 0.1, 3, 5), {0.1, 0.1, 0.1, 0.1, 0.1});
  check_rates(Schedule(curve("constant", 4), 0.2, 6, 5), {0.05, 0.1, 0.15, 0.2, 0.2, 0.2, 0.2});
}

TEST_CASE("a step schedule drops after every so many updates of the run") {
  ScheduleSpec spec = curve("step", 2);
  spec.every = 3;
  spec.gamma = 0.5;
  check_rates(Schedule(spec, 0.1, 10, 5), {0.05, 0.1, 0.1, 0.05, 0.05, 0.05, 0.025, 0.025, 0.025,
                                           0.0125, 0.0125, 0.0125, 0.0125});
}

TEST_CASE("a multistep schedule drops at each milestone") {
  ScheduleSpec spec = curve("multistep", 2);
  spec.milestones = {4, 9};
  check_rates(Schedule(spec, 0.1, 12, 5), {0.05, 0.1, 0.1, 0.1, 0.01, 0.01, 0.01, 0.01, 0.01, 0.001,
                                           0.001, 0.001, 0.001, 0.001, 0.001});
}

TEST_CASE("a polynomial schedule ends at end_lr") {
  ScheduleSpec spec = curve("polynomial");
  spec.power = 2;
  spec.end_lr = 0.02;
  check_rates(Schedule(spec, 0.1, 10, 5), {0.1, 0.0848, 0.0712, 0.0592, 0.0488, 0.04, 0.0328,
                                           0.0272, 0.0232, 0.0208, 0.02, 0.02, 0.02});
  ScheduleSpec linear = curve("polynomial", 5);
  linear.end_lr = 0.01;
  check_rates(Schedule(linear, 0.1, 10, 5),
              {0.02, 0.04, 0.06, 0.08, 0.1, 0.1, 0.082, 0.064, 0.046, 0.028, 0.01, 0.01, 0.01});
}

TEST_CASE("a cosine schedule ends at end_lr") {
  ScheduleSpec spec = curve("cosine");
  spec.end_lr = 0.01;
  check_rates(Schedule(spec, 0.1, 10, 5),
              {0.1, 0.0977975432333, 0.0914057647469, 0.0814503363532, 0.0689057647469, 0.055,
               0.0410942352531, 0.0285496636468, 0.0185942352531, 0.0122024567667, 0.01, 0.01});
  ScheduleSpec warm = curve("cosine", 2);
  warm.end_lr = 0.01;
  check_rates(Schedule(warm, 0.1, 10, 5),
              {0.05, 0.1, 0.1, 0.096574578963, 0.0868198051534, 0.0722207544564, 0.055,
               0.0377792455436, 0.0231801948466, 0.013425421037, 0.01, 0.01, 0.01});
}

TEST_CASE("B59 warm-up has no zero, no jump and no edge") {
  check_rates(Schedule(curve("polynomial", 5), 0.1, 10, 5),
              {0.02, 0.04, 0.06, 0.08, 0.1, 0.1, 0.08, 0.06, 0.04, 0.02, 0, 0, 0});
  check_rates(Schedule(curve("cosine", 5), 0.1, 10, 5),
              {0.02, 0.04, 0.06, 0.08, 0.1, 0.1, 0.0904508497187, 0.0654508497187, 0.0345491502813,
               0.00954915028125, 0, 0, 0});
  for (const char* kind : {"constant", "polynomial", "cosine"}) {
    for (std::int64_t warmup : {0, 1}) {
      CHECK(Schedule(curve(kind, warmup), 0.1, 10, 5).lr(0) == 0.1);
    }
    for (std::int64_t warmup : {0, 1, 5, 10}) {
      CAPTURE(kind);
      CAPTURE(warmup);
      const Schedule schedule(curve(kind, warmup), 0.1, 10, 5);
      CHECK((warmup == 0 || schedule.lr(warmup - 1) == 0.1));
      for (double rate : rates(schedule, 13)) {
        CHECK(std::isfinite(rate));
        CHECK(rate >= 0);
        CHECK(rate <= 0.1);
      }
    }
    // A run that is warm-up alone: after it, the end of the curve.
    const Schedule all_warmup(curve(kind, 10), 0.1, 10, 5);
    CHECK(all_warmup.lr(9) == 0.1);
    CHECK(all_warmup.lr(10) == (std::string(kind) == "constant" ? 0.1 : 0.0));
    CHECK_THROWS_WITH_AS(Schedule(curve(kind, 11), 0.1, 10, 5),
                         "optimizer.schedule: the warm-up is longer than the run: expected at most "
                         "10 updates, found 11",
                         Error);
  }
}

TEST_CASE("B46 the rate depends on the update alone, not on ranks, shards or accumulation") {
  OptimizerSpec optimizer;
  optimizer.lr = 0.1;
  optimizer.schedule = curve("cosine", 3);
  const std::vector<double> expected = rates(Schedule(optimizer.schedule, 0.1, 20, 5), 20);
  CHECK(expected[2] == 0.1);
  for (std::int64_t shards : {1, 2, 4, 8, 16}) {
    const BatchPlan plan(300, 64, shards, false);
    CHECK(plan.steps_per_epoch() == 5);
    CHECK(rates(Schedule(optimizer.schedule, base_lr(optimizer, plan.global()), 20,
                         plan.steps_per_epoch()),
                20) == expected);
  }
}

TEST_CASE("B46 linear scaling is by the global batch, once") {
  OptimizerSpec spec;
  spec.lr = 0.1;
  CHECK(base_lr(spec, 1024) == 0.1);
  spec.lr_scale = "linear";
  CHECK(base_lr(spec, 256) == 0.1);
  CHECK(base_lr(spec, 1024) == 0.4);
  spec.lr_base_batch = 64;
  CHECK(base_lr(spec, 32) == 0.05);
  CHECK(Schedule(spec.schedule, base_lr(spec, 32), 10, 5).lr(7) == 0.05);
}

TEST_CASE("B46 lengths in epochs count the last partial batch") {
  const BatchPlan plan(37, 8, 1, false);  // 4 full batches and one of 5
  CHECK(plan.steps_per_epoch() == 5);
  ScheduleSpec spec = curve("multistep");
  spec.warmup_epochs = 1;
  spec.milestones_epochs = {2, 4};
  const Schedule schedule(spec, 0.1, 30, plan.steps_per_epoch());
  CHECK(schedule.lr(0) == doctest::Approx(0.02));
  CHECK(schedule.lr(4) == 0.1);
  CHECK(schedule.lr(9) == 0.1);
  CHECK(schedule.lr(10) == doctest::Approx(0.01));  // the 11th update, the first of epoch 2
  CHECK(schedule.lr(19) == doctest::Approx(0.01));
  CHECK(schedule.lr(20) == doctest::Approx(0.001));
}

TEST_CASE("lengths in parts of an epoch are rounded to whole updates") {
  ScheduleSpec spec = curve("step");
  spec.every_epochs = 0.5;
  spec.warmup_epochs = 0.3;
  const Schedule half(spec, 1, 100, 7);  // every 3.5: 4; warm-up 2.1: 2
  CHECK(half.lr(0) == 0.5);
  CHECK(half.lr(3) == 1);
  CHECK(half.lr(4) == doctest::Approx(0.1));
  spec.every_epochs = 0.01;  // no update at all: every one
  CHECK(Schedule(spec, 1, 100, 7).lr(3) == doctest::Approx(1e-3));
}

TEST_CASE("a rate far into a long run is finite and falls") {
  constexpr std::int64_t steps = 3000000000;
  ScheduleSpec spec = curve("cosine", 2500000000);
  const Schedule schedule(spec, 0.1, steps, 10);
  CHECK(schedule.lr(1249999999) == doctest::Approx(0.05));
  CHECK(schedule.lr(2499999999) == 0.1);
  CHECK(schedule.lr(2750000000) == doctest::Approx(0.05));
  CHECK(schedule.lr(steps) == 0);
  CHECK(schedule.lr(INT64_MAX) == 0);
  ScheduleSpec drops = curve("step");
  drops.every = 1;
  CHECK(Schedule(drops, 0.1, INT64_MAX, 1).lr(INT64_MAX) == 0);
  ScheduleSpec epochs = curve("constant");
  epochs.warmup_epochs = 1e18;
  CHECK_THROWS_AS(Schedule(epochs, 0.1, steps, 1000), Error);
}

TEST_CASE("a schedule refuses keys that do not go together") {
  const auto message = [](const ScheduleSpec& spec) {
    try {
      const Schedule schedule(spec, 0.1, 10, 5);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::usage);
      return std::string(error.what());
    }
    return std::string();
  };
  ScheduleSpec spec = curve("constant", 2);
  CHECK(message(spec).empty());
  spec.warmup_epochs = 1;
  CHECK(message(spec) == "optimizer.schedule.warmup and warmup_epochs are both given; keep one");
  spec = curve("step");
  CHECK(message(spec) == "optimizer.schedule.every or every_epochs is needed with kind \"step\"");
  spec.every = 2;
  spec.every_epochs = 2;
  CHECK(message(spec) == "optimizer.schedule.every and every_epochs are both given; keep one");
  spec = curve("multistep");
  CHECK(message(spec) ==
        "optimizer.schedule.milestones or milestones_epochs is needed with kind \"multistep\"");
  spec.milestones = {3, 3};
  CHECK(message(spec) == "optimizer.schedule.milestones must increase");
  spec.milestones = {3, 5};
  spec.milestones_epochs = {2, 1};
  CHECK(message(spec) ==
        "optimizer.schedule.milestones and milestones_epochs are both given; keep one\n"
        "optimizer.schedule.milestones_epochs must increase");
  CHECK(message(curve("cosin")) == "optimizer.schedule.kind: unknown \"cosin\"");
}

TEST_CASE("a schedule key without effect is a warning") {
  ScheduleSpec spec = curve("cosine");
  Value table;
  table.set("gamma", {0.5, {"a.toml", 3, 9}});
  table.set("end_lr", {0.01, {"a.toml", 4, 10}});
  Problems problems;
  check(spec, table, problems);
  CHECK(problems.empty());
  CHECK(problems.warnings() ==
        std::vector<std::string>{
            "a.toml:3:9: optimizer.schedule.gamma has no effect with kind \"cosine\""});
}

}  // namespace annulus
