// SPDX-License-Identifier: Apache-2.0
#include "support/process.h"

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace annulus::testing {
namespace {

struct Pipe {
  int read_end = -1;
  int write_end = -1;
  Pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
    read_end = ends[0];
    write_end = ends[1];
  }
};

[[noreturn]] void become(const Command& command, const Pipe& out, const Pipe& err) {
  setpgid(0, 0);  // so that a timeout can end its children too
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(out.write_end, STDOUT_FILENO);
  dup2(err.write_end, STDERR_FILENO);
  if (!command.directory.empty() && chdir(command.directory.c_str()) != 0) _exit(126);
  // NOLINTNEXTLINE(concurrency-mt-unsafe): a forked child has one thread
  for (const auto& [name, value] : command.environment) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> words;
  for (const std::string& word : command.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  _exit(127);
}

// Reads what is there; false at the end of the stream.
bool drain(int descriptor, std::string& text) {
  std::array<char, 65536> block{};
  const ssize_t count = read(descriptor, block.data(), block.size());
  if (count > 0) text.append(block.data(), static_cast<std::size_t>(count));
  return count > 0;
}

}  // namespace

Finished run(const Command& command) {
  const Pipe out;
  const Pipe err;
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) become(command, out, err);
  setpgid(child, child);
  close(out.write_end);
  close(err.write_end);

  Finished finished;
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(command.timeout_s);
  std::array<pollfd, 2> streams = {pollfd{out.read_end, POLLIN, 0},
                                   pollfd{err.read_end, POLLIN, 0}};
  bool timed_out = false;
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0 ||
        poll(streams.data(), streams.size(), static_cast<int>(left.count())) == 0) {
      timed_out = true;
      kill(-child, SIGKILL);
      break;
    }
    if (streams[0].revents != 0 && !drain(streams[0].fd, finished.out)) streams[0].fd = -1;
    if (streams[1].revents != 0 && !drain(streams[1].fd, finished.err)) streams[1].fd = -1;
  }
  close(out.read_end);
  close(err.read_end);
  int status = 0;
  waitpid(child, &status, 0);
  finished.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (timed_out) finished.err += "\n(killed by the test: too long)\n";
  return finished;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TemporaryDirectory::TemporaryDirectory() {
  std::string pattern = (std::filesystem::temp_directory_path() / "annulus-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  path_ = pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace annulus::testing
