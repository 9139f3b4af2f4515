// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include "core/error.h"
#include "core/log.h"

namespace annulus {
namespace fs = std::filesystem;

namespace {

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// A directory for log files. While `f` of terminal() runs, standard error goes to a file there.
class Directory {
 public:
  Directory() {
    std::string name = (fs::temp_directory_path() / "annulus_log_XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Directory() { fs::remove_all(path_); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  std::string path() const { return path_.string(); }
  std::string file(const std::string& name) const { return read(path_ / name); }

  template <class F>
  std::string terminal(const F& f) const {
    const std::string name = (path_ / "terminal").string();
    std::fflush(stderr);
    const int saved = dup(STDERR_FILENO);
    const int file = open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    dup2(file, STDERR_FILENO);
    f();
    std::fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(file);
    close(saved);
    return read(name);
  }

 private:
  fs::path path_;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines(1);
  for (char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  CHECK(lines.back().empty());  // whole lines only
  lines.pop_back();
  return lines;
}

}  // namespace

TEST_CASE("B91 rank 0 speaks on the terminal, the others only in their files") {
  const Directory dir;
  const auto speak = [&](int rank) {
    return dir.terminal([&] {
      Log log(rank);
      log.info("before {}", 1);
      log.open_file(dir.path());
      log.info("step {}", 2);
      log.warning("slow {}", 3);
      log.debug("detail {}", 4);
      log.file_only("progress");
    });
  };
  CHECK(speak(0) == "before 1\nstep 2\nannulus: warning: slow 3\n");
  CHECK(speak(12) == "");
  for (const char* name : {"rank_0000.log", "rank_0012.log"}) {
    const std::vector<std::string> lines = lines_of(dir.file(name));
    REQUIRE(lines.size() == 5);
    CHECK(lines[0].substr(23) == " info before 1");  // what came before the file was there
    CHECK(lines[1].substr(23) == " info step 2");
    CHECK(lines[2].substr(23) == " warning slow 3");
    CHECK(lines[3].substr(23) == " debug detail 4");
    CHECK(lines[4].substr(23) == " info progress");
    CHECK(lines[0][4] == '-');
    CHECK(lines[0][19] == '.');
  }
}

TEST_CASE("a log before ranks are known speaks like rank 0") {
  const Directory dir;
  CHECK(dir.terminal([] { Log(-1).info("hello"); }) == "hello\n");
  CHECK(dir.terminal([] { Log(0, Log::Level::warning).info("hello"); }) == "");
  CHECK(dir.terminal([] { Log(0, Log::Level::debug).debug("hello"); }) == "hello\n");
}

TEST_CASE("B91 no control characters reach terminal or file, and braces are text") {
  const Directory dir;
  const std::string nasty = "a\rb\x1b[31mc\x07{}\td\n\u00e4";
  const std::string seen = dir.terminal([&] {
    Log log(0);
    log.open_file(dir.path());
    log.info("{}", nasty);
    log.file_only(nasty);
  });
  CHECK(seen == "a?b?[31mc?{}\td\n\u00e4\n");
  const std::string file = dir.file("rank_0000.log");
  CHECK(file.find('\r') == std::string::npos);
  CHECK(file.find('\x1b') == std::string::npos);
  CHECK(file.find("a?b?[31mc?{}\td\n\u00e4\n") != std::string::npos);
}

TEST_CASE("a log goes on at the end of its file") {
  const Directory dir;
  for (int i = 0; i < 2; ++i) {
    Log log(3);
    log.open_file(dir.path());
    log.info("start {}", i);
  }
  CHECK(lines_of(dir.file("rank_0003.log")).size() == 2);
}

TEST_CASE("lines of many threads stay whole") {
  const Directory dir;
  {
    Log log(1);
    log.open_file(dir.path());
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&log, t] {
        for (int i = 0; i < 100; ++i) log.info("{}", std::string(50, static_cast<char>('a' + t)));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  const std::vector<std::string> lines = lines_of(dir.file("rank_0001.log"));
  CHECK(lines.size() == 400);
  for (const std::string& line : lines) {
    const std::string text = line.substr(line.rfind(' ') + 1);
    CHECK(text == std::string(50, text[0]));
  }
}

TEST_CASE("a log file that cannot be written is an error of output") {
  const Directory dir;
  std::ofstream(dir.path() + "/file") << "";
  Log log(0);
  try {
    log.open_file(dir.path() + "/file/sub");
    FAIL("a file is no directory");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::output);
    CHECK(std::string(error.what()) ==
          "cannot write log '" + dir.path() + "/file/sub/rank_0000.log': Not a directory");
  }
}

TEST_CASE("a log on a full disk is one warning on the terminal of any rank, and the run goes on") {
  const Directory dir;
  for (const char* name : {"rank_0000.log", "rank_0002.log"}) {
    fs::create_symlink("/dev/full", fs::path(dir.path()) / name);
  }
  const auto speak = [&](int rank) {
    return dir.terminal([&] {
      Log log(rank);
      log.open_file(dir.path());
      for (int i = 0; i < 3; ++i) log.file_only("line");
      log.info("done");
    });
  };
  const std::string rest = ": No space left on device; the run goes on without\n";
  CHECK(speak(0) ==
        "annulus: warning: cannot write log '" + dir.path() + "/rank_0000.log'" + rest + "done\n");
  CHECK(speak(2) ==
        "annulus: warning: [rank 2] cannot write log '" + dir.path() + "/rank_0002.log'" + rest);
}

TEST_CASE(
    "an error that is printed at the end is in the rank's file before, and not printed twice") {
  const Directory dir;
  CHECK(dir.terminal([&] {
    Log log(0);
    log.error_in_file("there is no file yet");
    log.open_file(dir.path());
    log.error_in_file("output: no room\x1b");
  }) == "");
  const std::vector<std::string> lines = lines_of(dir.file("rank_0000.log"));
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].substr(23) == " error output: no room?");
}

}  // namespace annulus
