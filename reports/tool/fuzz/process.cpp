#include "reports/tool/fuzz/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "reports/tool/text.h"

namespace attest {

FuzzProcess::FuzzProcess(const std::vector<std::string>& command, const std::string& directory,
                         const std::vector<std::pair<std::string, std::string>>& environment) {
  int ends[2], told[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw UsageError(std::string("no pipe: ") + std::strerror(errno));
  if (pipe2(told, O_CLOEXEC) != 0) {
    close(ends[0]);
    close(ends[1]);
    throw UsageError(std::string("no pipe: ") + std::strerror(errno));
  }
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    if (chdir(directory.c_str()) != 0) _exit(126);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    execvp(arguments[0], arguments.data());
    const int error = errno;
    if (write(told[1], &error, sizeof error) < 0) _exit(126);
    _exit(127);
  }
  const int forked = errno;
  close(ends[1]);
  close(told[1]);
  file_ = ends[0];
  int error = 0;
  // Closed by a successful exec.
  const bool refused = process_ > 0 && read(told[0], &error, sizeof error) == static_cast<ssize_t>(sizeof error);
  close(told[0]);
  if (process_ > 0 && !refused) {
    fcntl(file_, F_SETFL, O_NONBLOCK);
    return;
  }
  if (process_ > 0) waitpid(process_, nullptr, 0);
  process_ = -1;
  close(file_);
  throw UsageError(command[0] + " cannot be started: " + std::strerror(refused ? error : forked));
}

FuzzProcess::~FuzzProcess() {
  if (process_ > 0) {
    kill();
    wait();
  }
  if (file_ >= 0) close(file_);
}

bool FuzzProcess::read_lines(const std::function<void(const std::string&)>& line) {
  char block[1 << 14];
  for (;;) {
    const ssize_t n = read(file_, block, sizeof block);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return true;
    if (n <= 0) break;
    pending_.append(block, static_cast<std::size_t>(n));
    std::size_t begin = 0;
    for (std::size_t end; (end = pending_.find('\n', begin)) != std::string::npos; begin = end + 1)
      line(pending_.substr(begin, end - begin));
    pending_.erase(0, begin);
  }
  if (!pending_.empty()) line(pending_);
  pending_.clear();
  return false;
}

int FuzzProcess::run_to_end(const std::function<void(const std::string&)>& line, double seconds) {
  const double begin = fuzz_clock();
  while (read_lines(line)) {
    if (seconds > 0 && fuzz_clock() - begin > seconds) kill();
    pollfd more = {file_, POLLIN, 0};
    poll(&more, 1, 1000);
  }
  return wait();
}

double fuzz_clock() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void FuzzProcess::interrupt() const {
  if (process_ > 0) ::kill(process_, SIGINT);
}

void FuzzProcess::kill() const {
  if (process_ > 0) ::kill(-process_, SIGKILL);
  if (process_ > 0) ::kill(process_, SIGKILL);
}

int FuzzProcess::wait() {
  if (process_ > 0) {
    while (waitpid(process_, &status_, 0) < 0 && errno == EINTR) {
    }
    process_ = -1;
  }
  return status_;
}

}  // namespace attest
