// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "core/trace.h"

using annulus::Trace;
using annulus::TraceRange;

TEST_CASE("ranges land in their lane, in the order in which they end") {
  Trace trace(1, 10);
  CHECK(trace.lanes() == 3);
  {
    const TraceRange outer(&trace, Trace::trainer, "step", "train", 7);
    const TraceRange inner(&trace, Trace::trainer, "conv1", "forward");
  }
  { const TraceRange load(&trace, Trace::first_worker, "batch", "load", 3); }
  const auto events = trace.events(Trace::trainer);
  REQUIRE(events.size() == 2);
  CHECK(events[0].name == "conv1");
  CHECK(events[1].name == "step");
  CHECK(events[1].begin <= events[0].begin);
  CHECK(events[0].end <= events[1].end);
  CHECK(trace.events(Trace::communication).empty());
  CHECK(trace.events(Trace::first_worker).size() == 1);
}

TEST_CASE("a lane that is full records no more, a lane that is not there nothing") {
  Trace trace(0, 2);
  for (int i = 0; i < 5; ++i) const TraceRange range(&trace, Trace::trainer, "a", "b", i);
  CHECK(trace.events(Trace::trainer).size() == 2);
  CHECK(trace.events(Trace::trainer)[1].number == 1);
  { const TraceRange nowhere(&trace, Trace::first_worker, "a", "b"); }
  { const TraceRange none(nullptr, Trace::trainer, "a", "b"); }
}

TEST_CASE("Chrome's format: processes are ranks, threads are lanes, times are microseconds") {
  Trace trace(1, 2);
  const Trace::Clock::time_point start{std::chrono::milliseconds(5)};
  trace.record(Trace::communication,
               {"bucket", "reduce", 4, start, start + std::chrono::microseconds(250)});
  const std::string text = trace.to_chrome(3, "h\"0\n");
  CHECK(text ==
        "{\"traceEvents\":[\n"
        "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":3,\"args\":{\"name\":\"rank 3 on "
        "h\\\"0?\"}},\n"
        "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":3,\"tid\":0,\"args\":{\"name\":\"trainer\"}"
        "},\n"
        "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":3,\"tid\":1,\"args\":{\"name\":"
        "\"communication\"}},\n"
        "{\"name\":\"bucket 4 "
        "reduce\",\"cat\":\"reduce\",\"ph\":\"X\",\"pid\":3,\"tid\":1,\"ts\":5000.000,"
        "\"dur\":250.000},\n"
        "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":3,\"tid\":2,\"args\":{\"name\":\"loader "
        "0\"}}\n"
        "]}\n");
}
