// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <optional>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "support/temp_dir.h"
#include "train/run_directory.h"

using annulus::Error;
using annulus::RunDirectory;
using annulus::RunLock;
using annulus::test::TempDir;
namespace fs = std::filesystem;

namespace {

// The message of what `work` throws; empty where it throws nothing.
template <class Work>
std::string refusal(Work work) {
  try {
    work();
  } catch (const Error& error) {
    CHECK(error.exit_code() == 4);
    return error.text();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a new run directory is made with its parts, an empty one is taken, a used one never") {
  const TempDir dir;
  const auto made = RunDirectory::create(dir / "a/b/run", "digits");
  CHECK(made.path == dir / "a/b/run");
  CHECK(made.lock.held());
  CHECK(fs::is_directory(made.path + "/log"));
  CHECK(fs::is_directory(made.path + "/checkpoints"));

  fs::create_directory(dir / "empty");
  CHECK(RunDirectory::create(dir / "empty", "digits").lock.held());

  fs::create_directory(dir / "used");
  std::ofstream(dir / "used/thesis.txt") << "years of work";
  CHECK(has(refusal([&] { RunDirectory::create(dir / "used", "x"); }), "is never overwritten"));
  CHECK(!fs::exists(dir / "used/log"));
  std::ofstream(dir / "file") << "text";
  CHECK(has(refusal([&] { RunDirectory::create(dir / "file", "x"); }), "is never overwritten"));
}

TEST_CASE("what a new run would be refused for is known before anything is written") {
  const TempDir dir;
  CHECK(refusal([&] { RunDirectory::refuse_used(dir / "new"); }).empty());
  CHECK(refusal([&] { RunDirectory::refuse_used(""); }).empty());
  CHECK(!fs::exists(dir / "new"));
  fs::create_directory_symlink(dir / "nowhere", dir / "link");
  CHECK(has(refusal([&] { RunDirectory::refuse_used(dir / "link"); }), "is never overwritten"));
}

TEST_CASE("names that no file system takes are one line with the reason") {
  const TempDir dir;
  CHECK(has(refusal([&] { RunDirectory::create(dir / std::string(300, 'x'), "x"); }), "too long"));
  CHECK(has(refusal([&] { RunDirectory::create("/proc/annulus", "x"); }), "/proc/annulus"));
  CHECK(has(refusal([&] { RunDirectory::open(dir / "gone"); }), "no such run directory"));
  // What cannot be looked at is not said to exist, nor not to exist.
  fs::create_symlink("loop", dir / "loop");
  const std::string loop = dir / "loop/run cannot be looked at: Too many levels of symbolic links";
  CHECK(refusal([&] { RunDirectory::create(dir / "loop/run", "x"); }).find("Too many levels") !=
        std::string::npos);
  CHECK(refusal([&] { RunDirectory::refuse_used(dir / "loop/run"); }) == loop);
  CHECK(refusal([&] { RunDirectory::open(dir / "loop/run"); }) == loop);
}

TEST_CASE("a run directory in use is refused with who uses it, and is free after its death") {
  const TempDir dir;
  int ready[2];
  int finish[2];
  REQUIRE(pipe(ready) == 0);
  REQUIRE(pipe(finish) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto claimed = RunDirectory::create(dir / "run", "x");
    char byte = 'r';
    if (write(ready[1], &byte, 1) != 1 || read(finish[0], &byte, 1) != 1) _exit(1);
    _exit(0);  // without destructors, as a kill would
  }
  char byte = 0;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  const std::string open = refusal([&] { RunDirectory::open(dir / "run"); });
  CHECK(has(open, "is in use by process " + std::to_string(child) + " on "));
  CHECK(has(refusal([&] { RunLock lock(dir / "run"); }), "is in use by"));
  REQUIRE(write(finish[1], "f", 1) == 1);
  int status = 1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(refusal([&] { RunDirectory::open(dir / "run"); }).empty());
  for (int file : {ready[0], ready[1], finish[0], finish[1]}) close(file);
}
