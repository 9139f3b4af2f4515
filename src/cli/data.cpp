// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "cli/commands.h"
#include "core/error.h"
#include "io/data_file.h"
#include "io/idx_import.h"
#include "io/json.h"

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

}  // namespace

int run_data_import(const DataImportOptions& options) {
  require(options.kind == "idx", ErrorKind::usage, "data import: unknown kind '{}'; known: idx",
          options.kind);
  import_idx(options.source, options.destination);
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
  for (const DatasetReport& report : verify_file(options.file)) {
    if (options.json) {
      JsonObject json = to_json(report.info);
      if (report.numeric) json.set("minimum", report.minimum).set("maximum", report.maximum);
      objects.push_back(json);
      continue;
    }
    const std::string range =
        report.numeric ? fmt::format("  from {} to {}", report.minimum, report.maximum) : "";
    std::puts((to_line(report.info) + range).c_str());
  }
  if (options.json) {
    print_json(options.file, objects);
  } else {
    std::puts(fmt::format("{}: all data sets read, no fault found", options.file).c_str());
  }
  return 0;
}

int run_data_synth(const DataSynthOptions& options) {
  write_synthetic_file(parse_synthetic_file(options.spec), options.destination);
  return run_data_info({options.destination, false});
}

}  // namespace annulus
