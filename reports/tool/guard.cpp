#include "reports/tool/guard.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>

#include "reports/tool/crash.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

std::atomic<int> channel{-1};  // to the parent; -1 in the parent, and after the one message
std::atomic<bool> told{false};
std::atomic<pid_t> child_process{0};
std::atomic<int> asked_to_stop{0};

struct Message {
  char ending;
  unsigned char code;
};

// A terminal sends Ctrl-C to both processes; what was sent to the parent alone goes on to the child.
void pass_on(int signal, siginfo_t* info, void*) {
  const int saved = errno;
  asked_to_stop = signal;
  if (info->si_code <= 0) kill(child_process, signal);
  errno = saved;
}

void pass_on_signals() {
  struct sigaction action = {};
  action.sa_sigaction = pass_on;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

void end_by(int signal) {
  std::signal(signal, SIG_DFL);
  raise(signal);
}

void mark_crashed(const std::string& json) {
  if (json.empty() || !is_replaceable(json)) return;
  try {
    auto report = nlohmann::ordered_json::parse(read_text(json));
    report["verdict"] = "crashed";
    write_whole(json, report.dump(2, ' ', false, nlohmann::detail::error_handler_t::replace) + "\n");
  } catch (const std::exception& e) {
    std::cerr << "attest: the report does not say that the run crashed: " << e.what() << "\n";
  }
}

int ended_early(int status) {
  const std::string how =
      WIFSIGNALED(status) ? text("signal %d", WTERMSIG(status)) : text("exit status %d", WEXITSTATUS(status));
  std::cerr << "attest: a kernel ended the process (" << how << ") while these checks were running:\n" << std::flush;
  if (save_notes_left() == 0) std::cerr << "  none: a plugin was being loaded or unloaded\n";
  return 1;
}

int conclude(int status, const Message& message, bool complete, const std::string& json) {
  if (complete && message.ending == static_cast<char>(Ending::finished)) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == message.code) return message.code;
    mark_crashed(json);  // in a destructor or an atexit handler of a plugin
    return ended_early(status);
  }
  if (complete) {
    mark_crashed(json);
    return message.code;
  }
  if (WIFSIGNALED(status) && WTERMSIG(status) == asked_to_stop) end_by(asked_to_stop);
  mark_crashed(json);
  return ended_early(status);
}

}  // namespace

void tell_parent(Ending ending, int code) noexcept {
  told = true;
  const int to = channel.exchange(-1);
  if (to < 0) return;
  const Message message{static_cast<char>(ending), static_cast<unsigned char>(code)};
  const ssize_t ignored = write(to, &message, sizeof message);
  (void)ignored;
}

bool parent_was_told() noexcept { return told; }

void leave_guard() noexcept {
  if (const int to = channel.exchange(-1); to >= 0) close(to);
}

int run_reported(const std::function<int()>& action) {
  int code = 2;
  try {
    code = action();
  } catch (const std::exception& e) {
    // UsageError, PluginError and CaseError say file, field and reason; anything else is a defect of the tool, and
    // that must not look like a verdict either.
    std::cerr << "attest: " << e.what() << "\n";
  }
  errno = 0;
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::cout && !std::ferror(stdout)) return code;
  std::cerr << "attest: standard output cannot be written" << (errno ? std::string(": ") + std::strerror(errno) : "")
            << "; what it should hold is lost\n";
  return 2;
}

int run_guarded(const std::string& json, const std::function<int()>& action) {
  share_crash_notes();
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw UsageError(std::string("no pipe: ") + std::strerror(errno));
  std::cout.flush();
  const pid_t parent = getpid(), child = fork();
  if (child < 0) throw UsageError(std::string("no child process: ") + std::strerror(errno));
  if (child == 0) {
    // A killed parent takes the child along.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(2);
    close(ends[0]);
    channel = ends[1];
    const int code = run_reported(action);
    tell_parent(Ending::finished, code);
    std::exit(code);
  }
  child_process = child;
  pass_on_signals();
  close(ends[1]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  // A process that a kernel started may hold the pipe open: the message is there by now, or never comes.
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  Message message = {};
  const bool complete = read(ends[0], &message, sizeof message) == sizeof message;
  close(ends[0]);
  return conclude(status, message, complete, json);
}

}  // namespace attest
