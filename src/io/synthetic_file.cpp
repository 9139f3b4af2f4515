// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <set>

#include <fmt/ranges.h>

#include "core/error.h"
#include "core/rng.h"
#include "core/schema.h"
#include "io/data_file.h"
#include "io/new_data_file.h"

namespace annulus {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::int64_t number_in(const std::string& key, const std::string& text, std::int64_t least) {
  std::int64_t value = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error == std::errc() && at == text.data() + text.size() && value >= least,
          ErrorKind::usage, "'{}' must be an integer >= {}, not '{}'", key, least, text);
  return value;
}

template <class T>
T choice_in(const std::string& key, const std::string& text,
            const std::vector<std::pair<std::string, T>>& choices) {
  std::vector<std::string> words;
  for (const auto& [word, value] : choices) {
    if (word == text) return value;
    words.push_back(word);
  }
  fail(ErrorKind::usage, "'{}' must be one of {}, not '{}'", key, fmt::join(words, ", "), text);
}

void set_key(SyntheticFile& spec, const std::string& key, const std::string& text) {
  if (key == "samples") {
    spec.samples = number_in(key, text, 1);
  } else if (key == "test") {
    spec.test = number_in(key, text, 0);
  } else if (key == "shape") {
    std::vector<std::int64_t> extents;
    for (const std::string& part : split(text, 'x')) extents.push_back(number_in(key, part, 1));
    require(extents.size() < Shape::max_rank, ErrorKind::usage, "'shape' has {} axes, at most {}",
            extents.size(), Shape::max_rank - 1);
    spec.shape = Shape(extents);
  } else if (key == "classes") {
    spec.classes = number_in(key, text, 1);
  } else if (key == "seed") {
    spec.seed = static_cast<std::uint64_t>(number_in(key, text, 0));
  } else if (key == "type") {
    spec.dtype =
        choice_in<DType>(key, text, {{"u8", DType::u8}, {"f32", DType::f32}, {"f64", DType::f64}});
  } else if (key == "storage") {
    spec.storage = choice_in<Storage>(key, text,
                                      {{"contiguous", Storage::contiguous},
                                       {"chunked", Storage::chunked},
                                       {"compressed", Storage::compressed}});
  } else if (key == "chunk") {
    spec.chunk_rows = number_in(key, text, 1);
  } else {
    const std::string guess =
        nearest(key, {"samples", "test", "shape", "classes", "seed", "type", "storage", "chunk"});
    fail(ErrorKind::usage, "unknown key '{}' of a synthetic data set{}", key,
         guess.empty() ? "" : "; did you mean '" + guess + "'?");
  }
}

template <class T, class F>
void append(std::vector<std::byte>& bytes, std::size_t count, F&& value_at) {
  for (std::size_t i = 0; i < count; ++i) {
    const T value = static_cast<T>(value_at(i));
    const auto* raw = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), raw, raw + sizeof value);
  }
}

void append_sample(std::vector<std::byte>& bytes, const SyntheticFile& spec,
                   const RandomStream& stream, std::int64_t sample) {
  const auto count = static_cast<std::size_t>(spec.shape.elements());
  const auto id = static_cast<std::uint64_t>(sample);
  const auto normal = [&](std::size_t i) { return stream.normal(i, id, 0); };
  switch (spec.dtype) {
    case DType::u8:
      return append<std::uint8_t>(bytes, count,
                                  [&](std::size_t i) { return stream.bits(i, id, 0) >> 24; });
    case DType::f32:
      return append<float>(bytes, count, normal);
    case DType::f64:
      return append<double>(bytes, count, normal);
    default:
      fail(ErrorKind::usage, "synthetic data sets have type u8, f32 or f64, not {}",
           name(spec.dtype));
  }
}

// Writes `part`/images and `part`/labels, a few MB at a time.
void write_part(Hdf5Writer& writer, const SyntheticFile& spec, const std::string& part,
                std::int64_t samples) {
  constexpr std::int64_t piece_bytes = std::int64_t{4} << 20;
  const RandomStream stream(spec.seed, RandomUse::synthetic, part);
  const std::int64_t sample_bytes =
      spec.shape.elements() * static_cast<std::int64_t>(size_of(spec.dtype));
  // Whole chunks: a part of one would be compressed again with the next piece.
  const std::int64_t wanted = std::max<std::int64_t>(piece_bytes / sample_bytes, 1);
  const std::int64_t piece = (wanted + spec.chunk_rows - 1) / spec.chunk_rows * spec.chunk_rows;

  writer.create(part + "/images", spec.shape.with_batch(samples), spec.dtype, spec.storage,
                spec.chunk_rows);
  std::vector<std::byte> bytes;
  for (std::int64_t first = 0; first < samples; first += piece) {
    const std::int64_t count = std::min(piece, samples - first);
    bytes.clear();
    for (std::int64_t i = first; i < first + count; ++i) append_sample(bytes, spec, stream, i);
    writer.write_rows(first, count, bytes);
  }

  writer.create(part + "/labels", Shape{samples}, DType::i64);
  constexpr std::int64_t label_piece = std::int64_t{1} << 18;
  for (std::int64_t first = 0; first < samples; first += label_piece) {
    const std::int64_t count = std::min(label_piece, samples - first);
    bytes.clear();
    append<std::int64_t>(bytes, static_cast<std::size_t>(count), [&](std::size_t i) {
      return (first + static_cast<std::int64_t>(i)) % spec.classes;
    });
    writer.write_rows(first, count, bytes);
  }
}

// What the file takes. Random numbers cannot be compressed, so the storage makes no difference.
std::int64_t bytes_of(const SyntheticFile& spec) {
  std::int64_t bytes = static_cast<std::int64_t>(size_of(spec.dtype));
  bool too_large = false;
  for (std::int64_t extent : spec.shape) {
    too_large = too_large || __builtin_mul_overflow(bytes, extent, &bytes);
  }
  std::int64_t samples = 0;
  too_large = too_large || __builtin_add_overflow(bytes, sizeof(std::int64_t), &bytes) ||
              __builtin_add_overflow(spec.samples, spec.test, &samples) ||
              __builtin_mul_overflow(bytes, samples, &bytes);
  require(!too_large, ErrorKind::usage,
          "{} samples of shape {} are more than any file can have: at most 2^63 - 1 bytes",
          spec.samples, to_string(spec.shape));
  return bytes;
}

}  // namespace

SyntheticFile parse_synthetic_file(const std::string& text) {
  SyntheticFile spec;
  std::set<std::string> given;
  for (const std::string& part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    require(equals != std::string::npos, ErrorKind::usage,
            "'{}' is not KEY=VALUE (as in samples=1000,shape=3x32x32)", part);
    const std::string key = part.substr(0, equals);
    require(given.insert(key).second, ErrorKind::usage,
            "'{}' is given twice for one synthetic data set", key);
    set_key(spec, key, part.substr(equals + 1));
  }
  require(spec.samples > 0 && spec.shape.rank() > 0, ErrorKind::usage,
          "a synthetic data set needs samples and shape (as in samples=1000,shape=3x32x32)");
  bytes_of(spec);  // refuses what no file can have
  return spec;
}

void write_synthetic_file(const SyntheticFile& spec, const std::string& destination,
                          const std::function<void()>& check_stop) {
  const auto fill = [&](Hdf5Writer& writer) {
    write_part(writer, spec, "train", spec.samples);
    if (spec.test > 0) write_part(writer, spec, "test", spec.test);
  };
  write_new_data_file(destination, bytes_of(spec), fill, check_stop);
}

}  // namespace annulus
