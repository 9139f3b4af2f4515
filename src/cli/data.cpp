// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <functional>

#include "cli/commands.h"
#include "cli/job.h"
#include "core/error.h"
#include "io/data_file.h"
#include "io/idx_import.h"
#include "io/json.h"
#include "train/stop_signals.h"

namespace annulus {
namespace {

JsonObject to_json(const DatasetInfo& info) {
  JsonObject json;
  json.set("path", info.path)
      .set("extents", std::span<const std::int64_t>(info.extents))
      .set("type", info.type)
      .set("layout", info.layout)
      .set("stored_bytes", info.stored_bytes);
  return json;
}

std::string to_line(const DatasetInfo& info) {
  return fmt::format("{:<24} {:<22} {:<14} {:<28} {:>14} bytes", info.path,
                     extents_text(info.extents), info.type, info.layout, info.stored_bytes);
}

void print_json(const std::string& file, const std::vector<JsonObject>& datasets) {
  JsonObject json;
  json.set("file", file).set("datasets", std::span<const JsonObject>(datasets));
  std::puts(json.text().c_str());
}

void print(const DatasetReport& report) {
  std::string line = to_line(report.info);
  if (report.numeric) line += fmt::format("  from {} to {}", report.minimum, report.maximum);
  std::puts(line.c_str());
}

JsonObject to_json(const DatasetReport& report) {
  JsonObject json = to_json(report.info);
  if (report.numeric) json.set("minimum", report.minimum).set("maximum", report.maximum);
  if (!report.fault.empty()) json.set("fault", report.fault);
  return json;
}

// For work that saves nothing before its end.
std::function<void()> stop_by(StopSignals& signals, const std::string& destination) {
  return [&] {
    if (!signals.requested()) return;
    fail(ErrorKind::stopped, "{} came; '{}' is not written", signals.name(), destination);
  };
}

}  // namespace

int run_data_import(const DataImportOptions& options) {
  require(options.kind == "idx", ErrorKind::usage, "data import: unknown kind '{}'; known: idx",
          options.kind);
  StopSignals signals;
  import_idx(options.source, options.destination, stop_by(signals, options.destination));
  return run_data_info({options.destination, false});
}

int run_data_info(const DataFileOptions& options) {
  std::vector<JsonObject> objects;
  for (const DatasetInfo& info : describe_file(options.file)) {
    if (options.json) {
      objects.push_back(to_json(info));
    } else {
      std::puts(to_line(info).c_str());
    }
  }
  if (options.json) print_json(options.file, objects);
  return 0;
}

int run_data_verify(const DataFileOptions& options) {
  std::vector<JsonObject> objects;
  int code = 0;
  for (const DatasetReport& report : verify_file(options.file)) {
    if (options.json) {
      objects.push_back(to_json(report));
    } else if (report.fault.empty()) {
      print(report);
    }
    if (report.fault.empty()) continue;
    print_error(Error(ErrorKind::data, report.fault));
    code = static_cast<int>(ErrorKind::data);
  }
  if (options.json) {
    print_json(options.file, objects);
  } else if (code == 0) {
    std::puts(fmt::format("{}: all data sets read, no fault found", options.file).c_str());
  }
  return code;
}

int run_data_synth(const DataSynthOptions& options) {
  StopSignals signals;
  write_synthetic_file(parse_synthetic_file(options.spec), options.destination,
                       stop_by(signals, options.destination));
  return run_data_info({options.destination, false});
}

}  // namespace annulus
