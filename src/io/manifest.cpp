// SPDX-License-Identifier: Apache-2.0
#include "io/manifest.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "io/checksum.h"
#include "io/files.h"

namespace annulus {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t format_version = 1;

// Over the canonical text of everything else: keys in order, no spaces.
std::string checksum_of_members(Json manifest) {
  manifest.erase("checksum");
  const std::string text = manifest.dump();
  return checksum_of(std::as_bytes(std::span(text)));
}

DType dtype_named(const std::string& word) {
  constexpr std::array all = {DType::f32, DType::f64, DType::f16, DType::bf16,
                              DType::i32, DType::i64, DType::u8};
  const auto* found = std::find_if(all.begin(), all.end(),
                                   [&](DType dtype) { return word == annulus::name(dtype); });
  require(found != all.end(), ErrorKind::output, "unknown dtype '{}'", word);
  return *found;
}

Json tensor_json(const TensorInfo& tensor) {
  return {{"name", tensor.name},
          {"shape", std::vector<std::int64_t>(tensor.shape.begin(), tensor.shape.end())},
          {"dtype", annulus::name(tensor.dtype)},
          {"checksum", tensor.checksum}};
}

TensorInfo tensor_from(const Json& json) {
  const auto extents = json.at("shape").get<std::vector<std::int64_t>>();
  return {json.at("name").get<std::string>(), Shape(extents),
          dtype_named(json.at("dtype").get<std::string>()), json.at("checksum").get<std::string>()};
}

Manifest manifest_from(const Json& json) {
  Manifest manifest;
  manifest.meta = {json.at("step").get<std::int64_t>(), json.at("config").get<std::string>(),
                   json.at("data").get<std::string>(), json.at("versions").get<std::string>()};
  for (const Json& tensor : json.at("tensors")) manifest.tensors.push_back(tensor_from(tensor));
  for (const Json& scalar : json.at("scalars")) {
    manifest.scalars.push_back({scalar.at("name").get<std::string>(),
                                scalar.at("type").get<std::string>(),
                                scalar.at("value").get<std::string>()});
  }
  manifest.file_bytes = json.at("file").at("bytes").get<std::int64_t>();
  manifest.file_checksum = json.at("file").at("checksum").get<std::string>();
  return manifest;
}

void check_version(const Json& json, const std::string& path) {
  const auto version = json.at("format").get<std::int64_t>();
  if (version == format_version) return;
  throw Error(
      ErrorKind::output,
      fmt::format("checkpoint '{}' has a format that this version of annulus cannot read", path))
      .values(std::to_string(format_version), std::to_string(version));
}

void check_manifest_checksum(const Json& json, const std::string& path) {
  const auto expected = json.at("checksum").get<std::string>();
  const std::string found = checksum_of_members(json);
  if (found == expected) return;
  throw Error(ErrorKind::output,
              fmt::format("checkpoint '{}' is damaged: checksum of {}", path, manifest_name))
      .values(expected, found);
}

}  // namespace

std::string manifest_text(const Manifest& manifest) {
  Json json = {{"format", format_version},
               {"step", manifest.meta.step},
               {"config", manifest.meta.config},
               {"data", manifest.meta.data},
               {"versions", manifest.meta.versions},
               {"tensors", Json::array()},
               {"scalars", Json::array()},
               {"file",
                {{"name", tensors_name},
                 {"bytes", manifest.file_bytes},
                 {"checksum", manifest.file_checksum}}}};
  for (const TensorInfo& tensor : manifest.tensors) json["tensors"].push_back(tensor_json(tensor));
  for (const ScalarInfo& scalar : manifest.scalars) {
    json["scalars"].push_back(
        {{"name", scalar.name}, {"type", scalar.type}, {"value", scalar.value}});
  }
  try {
    json["checksum"] = checksum_of_members(json);
    return json.dump(1) + '\n';
  } catch (const Json::exception& error) {
    fail(ErrorKind::output, "the checkpoint's texts are not UTF-8: {}", error.what());
  }
}

Manifest read_manifest(const std::string& path) {
  const std::string file = (std::filesystem::path(path) / manifest_name).string();
  require(path_exists(file), ErrorKind::output, "'{}' is no checkpoint: it has no {}", path,
          manifest_name);
  const std::string text = read_file(file);
  try {
    const Json json = Json::parse(text);
    check_version(json, path);
    check_manifest_checksum(json, path);
    return manifest_from(json);
  } catch (const Json::exception& error) {
    fail(ErrorKind::output, "checkpoint '{}' is damaged: {} cannot be read: {}", path,
         manifest_name, error.what());
  }
}

}  // namespace annulus
