#include "reports/tool/mutants_child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "reports/tool/text.h"

namespace attest {
namespace {

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// After fork() in a process with threads: nothing but system calls.
[[noreturn]] void become(char* const* words, int output) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpgid(0, 0);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  execv(words[0], words);
  _exit(127);
}

std::string child_ending(int status) {
  if (WIFSIGNALED(status)) return text("signal %d", WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "" : text("exit code %d", WEXITSTATUS(status));
}

}  // namespace

std::string own_path() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

Ended run_child(const std::vector<std::string>& command, double seconds) {
  std::vector<char*> words;
  for (const std::string& w : command) words.push_back(const_cast<char*>(w.c_str()));
  words.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw UsageError(std::string("no line to a process: ") + std::strerror(errno));
  const double begin = wall_seconds();
  const pid_t child = fork();
  if (child == 0) become(words.data(), ends[1]);
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    throw UsageError(std::string("no process for ") + command[0] + ": " + std::strerror(errno));
  }

  Ended e;
  // The end of the line is the end of everything that holds it, so of what the child started too.
  double last_heard = begin;
  for (bool open = true; open && e.in_time;) {
    pollfd line = {ends[0], POLLIN, 0};
    const double left = last_heard + seconds - wall_seconds();
    e.in_time = left > 0;
    if (!e.in_time || poll(&line, 1, static_cast<int>(std::clamp(left * 1000, 1.0, 1000.0))) <= 0) continue;
    char piece[1 << 14];
    const ssize_t n = ::read(ends[0], piece, sizeof piece);
    if (n > 0) e.output.append(piece, static_cast<std::size_t>(n));
    open = n > 0 || (n < 0 && errno == EINTR);
    last_heard = wall_seconds();
  }
  if (!e.in_time) kill(-child, SIGKILL), kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  close(ends[0]);
  e.seconds = wall_seconds() - begin;
  e.ending = e.in_time ? child_ending(status) : text("did not return within %g s", seconds);
  return e;
}

}  // namespace attest
