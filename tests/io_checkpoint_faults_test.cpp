// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "io/checkpoint.h"
#include "support/checkpoint_state.h"
#include "support/temp_dir.h"

using namespace annulus;
using namespace annulus::test;
namespace fs = std::filesystem;

namespace {

// The text of the error that `call` throws, which must be one of output in one line.
template <class F>
std::string output_error(F&& call) {
  try {
    call();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::output) return std::string("other kind: ") + error.what();
    const std::string text = error.what();
    return text.find('\n') == std::string::npos ? text : "more than one line: " + text;
  }
  return "";
}

std::string load_error(const std::string& path, const NamedState& state, bool partial = false) {
  return output_error([&] { load_checkpoint(path, state, partial); });
}

void flip(const std::string& path, std::size_t place) {
  std::string text = contents_of(path);
  text.at(place) = static_cast<char>(text[place] ^ 1);
  std::ofstream(path, std::ios::binary) << text;
}

void replace_in(const std::string& path, const std::string& from, const std::string& to) {
  std::string text = contents_of(path);
  const std::size_t place = text.find(from);
  REQUIRE(place != std::string::npos);
  std::ofstream(path, std::ios::binary) << text.replace(place, from.size(), to);
}

}  // namespace

TEST_CASE("B85 a checkpoint of another model is refused with all of the differences") {
  const TempDir dir;
  SmallState saved(1);
  const std::string path = save_checkpoint(dir.path(), meta_of(1), saved.state());

  SmallState model(2);
  const SmallState before = model;
  NamedState other;
  other.add("conv1/weight", TensorView(model.weight.data(), Shape{3, 2}, DType::f32));
  other.add("conv2/running_mean", TensorView(std::span<double>(model.mean)));
  other.add("optimizer/counts", TensorView(std::span<std::int64_t>(model.counts)));
  other.add("mask", TensorView(std::span<std::uint8_t>(model.bytes)));
  other.add("update", &model.scale);
  other.add("scale", &model.update);
  CHECK(load_error(path, other) ==
        "checkpoint '" + path +
            "' does not fit the model; missing in the file: conv2/running_mean (2 f64); unexpected "
            "in the file: conv1/running_mean (2 f64), kind (scalar text); different: conv1/weight "
            "(file 2x3 f32, model 3x2 f32), scale (file scalar f64, model scalar i64), update "
            "(file scalar i64, model scalar f64)");
  CHECK(model == before);
}

TEST_CASE("a part of a checkpoint is loaded only where that is asked for") {
  const TempDir dir;
  SmallState saved(1);
  const std::string path = save_checkpoint(dir.path(), meta_of(1), saved.state());
  std::vector<float> weight(6);
  NamedState part;
  part.add("conv1/weight", TensorView(weight.data(), Shape{2, 3}, DType::f32));
  CHECK(load_error(path, part).find("unexpected in the file: conv1/running_mean") !=
        std::string::npos);
  CHECK(load_error(path, part, true).empty());
  CHECK(weight == saved.weight);
  part.add("conv9/weight", TensorView(weight.data(), Shape{2, 3}, DType::f32));
  CHECK(load_error(path, part, true).find("missing in the file: conv9/weight (2x3 f32)") !=
        std::string::npos);
}

TEST_CASE("what is no checkpoint says so") {
  const TempDir dir;
  SmallState state(1);
  CHECK(load_error(dir / "none", state.state()) ==
        fmt::format("'{}' is no checkpoint: it has no manifest.json", dir / "none"));
  const std::string path = save_checkpoint(dir.path(), meta_of(1), state.state());
  fs::remove(path + "/tensors.h5");
  CHECK(load_error(path, state.state()).find("cannot read '" + path + "/tensors.h5'") == 0);
  CHECK(output_error([&] { read_checkpoint_info(path); }).find("cannot read") == 0);
}

TEST_CASE("damaged files are refused with the expected and the found value") {
  const TempDir dir;
  SmallState saved(1);
  SmallState model(2);
  const SmallState before = model;
  const auto fresh = [&] { return save_checkpoint(dir.path(), meta_of(1), saved.state()); };

  std::string path = fresh();
  const auto size = fs::file_size(path + "/tensors.h5");
  fs::resize_file(path + "/tensors.h5", size - 1);
  CHECK(load_error(path, model.state()) ==
        "checkpoint '" + path + "' is damaged: bytes of tensors.h5: expected " +
            std::to_string(size) + ", found " + std::to_string(size - 1));
  CHECK(output_error([&] { read_checkpoint_info(path); }).find("bytes of tensors.h5") !=
        std::string::npos);

  path = fresh();
  flip(path + "/tensors.h5", size - 3);
  const std::string checksum = "' is damaged: checksum of tensors.h5: expected ";
  CHECK(load_error(path, model.state()).find(checksum) != std::string::npos);
  CHECK(output_error([&] { verify_checkpoint(path); }).find(checksum) != std::string::npos);
  CHECK(output_error([&] { diff_checkpoints(path, path); }).find(checksum) != std::string::npos);

  path = fresh();
  replace_in(path + "/manifest.json", "9007199254740993", "9007199254740992");
  CHECK(load_error(path, model.state()).find("checksum of manifest.json: expected ") !=
        std::string::npos);

  path = fresh();
  fs::resize_file(path + "/manifest.json", 100);
  CHECK(load_error(path, model.state()).find("' is damaged: manifest.json cannot be read") !=
        std::string::npos);
  CHECK(model == before);
}

TEST_CASE("a checkpoint of a newer format is refused with both versions") {
  const TempDir dir;
  SmallState state(1);
  const std::string path = save_checkpoint(dir.path(), meta_of(1), state.state());
  replace_in(path + "/manifest.json", "\"format\": 1", "\"format\": 2");
  CHECK(load_error(path, state.state()) ==
        "checkpoint '" + path +
            "' has a format that this version of annulus cannot read: expected 1, found 2");
}

TEST_CASE("names that HDF5 cannot keep apart are refused and leave nothing") {
  const TempDir dir;
  float value = 1;
  const TensorView view{std::span<float>(&value, 1)};
  for (const char* name : {"", "/a", "a/", "a//b", "a/./b"}) {
    CAPTURE(name);
    NamedState state;
    state.add(name, view);
    CHECK(output_error([&] {
            save_checkpoint(dir.path(), meta_of(1), state);
          }).find("cannot be the name of a tensor") != std::string::npos);
  }
  NamedState state;
  state.add("a", view);
  state.add("a/b", view);
  CHECK(output_error([&] { save_checkpoint(dir.path(), meta_of(1), state); }) ==
        "tensors 'a' and 'a/b' cannot both be in a checkpoint");
  std::string text = "\xff";
  NamedState binary;
  binary.add("text", &text);
  CHECK(output_error([&] { save_checkpoint(dir.path(), meta_of(1), binary); }).find("UTF-8") !=
        std::string::npos);
  CHECK(dir.names().empty());
}

TEST_CASE("a directory that cannot be made is an error of output") {
  const TempDir dir;
  SmallState state(1);
  std::ofstream(dir / "file") << "x";
  CHECK(output_error([&] {
          save_checkpoint(dir / "file", meta_of(1), state.state());
        }).find("cannot ") == 0);
  CHECK(output_error([&] { save_checkpoint(dir / "file/sub", meta_of(1), state.state()); }) ==
        "cannot make directory '" + (dir / "file/sub") + "': Not a directory");
}

TEST_CASE("what can be no checkpoint's file is neither waited for nor a bug") {
  const TempDir dir;
  SmallState state(1);
  fs::create_symlink("loop", dir / "loop");
  const std::string reason = "/manifest.json': Too many levels of symbolic links (errno 40)";
  CHECK(load_error(dir / "loop", state.state()) == "cannot look at '" + dir / "loop" + reason);
  CHECK(output_error([&] {
          latest_checkpoint(dir / "loop", nullptr);
        }).find("Too many levels of symbolic links") != std::string::npos);
  CHECK(output_error([&] {
          latest_checkpoint(dir / std::string(300, 'n'), nullptr);
        }).find("File name too long") != std::string::npos);
  CHECK(output_error([&] {
          save_checkpoint(dir / "loop", meta_of(1), state.state());
        }).find("Too many levels of symbolic links") != std::string::npos);

  for (const std::string name : {"/manifest.json", "/tensors.h5"}) {
    const std::string path = save_checkpoint(dir.path(), meta_of(1), state.state());
    fs::remove(path + name);
    REQUIRE(::mkfifo((path + name).c_str(), 0600) == 0);
    for (const auto& error :
         {load_error(path, state.state()), output_error([&] { verify_checkpoint(path); })}) {
      CAPTURE(error);
      CHECK((error == "'" + path + name + "' is not a regular file" ||
             error.find("is damaged: bytes of tensors.h5") != std::string::npos));
    }
  }
}

TEST_CASE("where the disk takes no more, one line, nothing under the final name, a clean exit") {
  const TempDir dir;
  SmallState small(1);
  const std::string former = save_checkpoint(dir.path(), meta_of(1), small.state());
  const std::string former_text = contents_of(former + "/tensors.h5");
  // In a process of its own, which no file of more than 100 kB can be written by.
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100'000, 100'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    std::vector<float> weight(100'000, 1);
    NamedState state;
    state.add("weight", TensorView(std::span<float>(weight)));
    const std::string error = output_error([&] { save_checkpoint(dir.path(), meta_of(1), state); });
    const bool good =
        error == "cannot write 'weight' of '" + former + "/tensors.h5': File too large (errno 27)";
    std::_Exit(good ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(dir.names() == std::vector<std::string>{"step_0000000001"});
  CHECK(contents_of(former + "/tensors.h5") == former_text);
}
