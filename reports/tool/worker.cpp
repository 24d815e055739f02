#include "reports/tool/worker.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "reports/tool/guard.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

// A message on the line: kind, size of the text, text.
struct Header {
  std::uint64_t kind, size;
};
constexpr std::uint64_t kRequest = 1, kAnnouncement = 2, kAnswer = 3, kDefect = 4;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// False if the other end is gone.
bool send_bytes(int line, const void* bytes, std::size_t size) {
  const char* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t n = send(line, at, size, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

bool send_message(int line, std::uint64_t kind, const std::string& text) {
  const Header header{kind, text.size()};
  return send_bytes(line, &header, sizeof header) && send_bytes(line, text.data(), text.size());
}

bool receive_bytes(int line, void* bytes, std::size_t size) {
  char* at = static_cast<char*>(bytes);
  while (size > 0) {
    const ssize_t n = recv(line, at, size, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

// Of the worker that this process is; nullptr: no limit.
LastWords* limited = nullptr;

// Private memory, not address space: what is only reserved (thread arenas, a device's address range) costs nothing.
void limit_memory(double bytes) {
  rlimit limit = {};
  if (!limited || getrlimit(RLIMIT_DATA, &limit) != 0) return;
  limit.rlim_cur = static_cast<rlim_t>(bytes);
  if (limit.rlim_max != RLIM_INFINITY && limit.rlim_cur > limit.rlim_max) limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_DATA, &limit) == 0) limited->set_memory_limit(limit.rlim_cur);
}

[[noreturn]] void serve_until_closed(int line, const Serve& serve, double memory) {
  const Announce announce = [&](const std::string& text) { send_message(line, kAnnouncement, text); };
  Header header = {};
  std::string request;
  while (receive_bytes(line, &header, sizeof header)) {
    request.resize(header.size);
    if (!receive_bytes(line, request.data(), request.size())) break;
    limit_memory(static_cast<double>(private_memory()) + memory * 0x1p30);
    try {
      if (!send_message(line, kAnswer, serve(request, announce))) break;
    } catch (const std::exception& e) {
      send_message(line, kDefect, std::string("threw: ") + e.what());
    }
  }
  _exit(0);
}

}  // namespace

void grant_memory(double bytes) {
  rlimit limit = {};
  if (limited && getrlimit(RLIMIT_DATA, &limit) == 0) limit_memory(static_cast<double>(limit.rlim_cur) + bytes);
}

Worker::Worker(const Serve& serve, double memory) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw UsageError(std::string("no line to a worker process: ") + std::strerror(errno));
  // What stands in a buffer would be written twice by a kernel that calls exit().
  std::cout.flush();
  std::fflush(nullptr);
  const pid_t parent = getpid();
  child_ = fork();
  if (child_ < 0) {
    child_ = 0;
    close(ends[0]), close(ends[1]);
    throw UsageError(std::string("no worker process: ") + std::strerror(errno));
  }
  if (child_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // nothing outlives the gate
    if (getppid() != parent) _exit(0);
    close(ends[0]);
    leave_guard();
    // Ctrl-C reaches every process of the terminal; the parent decides what becomes of this one.
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGTERM, SIG_DFL);
    const rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    last_words_.speak_here();
    if (memory > 0 && !under_sanitizer()) limited = &last_words_;
    serve_until_closed(ends[1], serve, memory);
  }
  close(ends[1]);
  line_ = ends[0];
}

Worker::~Worker() {
  if (child_ > 0) {
    kill(child_, SIGKILL);
    while (waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (line_ >= 0) close(line_);
}

void Worker::ask(const std::string& request, double seconds) {
  reply_ = {};
  busy_ = true;
  limit_ = seconds;
  deadline_ = now() + seconds;
  send_message(line_, kRequest, request);  // if it is gone, the end of the line says so
}

double Worker::seconds_left() const { return deadline_ - now(); }

bool Worker::take_messages() {
  char piece[1 << 16];
  for (;;) {
    const ssize_t n = recv(line_, piece, sizeof piece, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (n <= 0) {
      line_closed_ = true;
      break;
    }
    received_.append(piece, static_cast<std::size_t>(n));
  }
  for (Header header = {}; received_.size() >= sizeof header;) {
    std::memcpy(&header, received_.data(), sizeof header);
    if (received_.size() - sizeof header < header.size) break;
    std::string text = received_.substr(sizeof header, header.size);
    received_.erase(0, sizeof header + header.size);
    if (header.kind == kAnnouncement) {
      reply_.announced = std::move(text);
      continue;
    }
    busy_ = false;
    reply_.answered = header.kind == kAnswer;
    (reply_.answered ? reply_.answer : reply_.ending) = std::move(text);
    return true;
  }
  return false;
}

bool Worker::progress() {
  if (take_messages()) return true;
  // A process that the kernel started may hold the line open, so the end of the line is no sure sign of the end.
  int status = 0;
  if (waitpid(child_, &status, WNOHANG) != child_) return false;
  child_ = 0;
  const std::string ending = last_words_.take(status);
  if (!line_closed_ && take_messages()) {  // it answered, and then it ended
    ended_after_ = ending;
    return true;
  }
  const bool was_busy = busy_;
  busy_ = false;
  (was_busy ? reply_.ending : ended_after_) = ending;
  return was_busy;
}

void Worker::give_up() {
  kill(child_, SIGKILL);
  int status = 0;
  while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
  }
  child_ = 0;
  busy_ = false;
  last_words_.take(status);
  reply_.hung = true;
  reply_.ending = text("did not return within %.10g s", limit_);
}

}  // namespace attest
