#include "reports/tool/bench_peer.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "reports/bench_files.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

constexpr double patience_start = 120, patience_answer = 120;  // seconds

// The last line that a process wrote to its standard error.
std::string last_line(int file) {
  char tail[2048];
  const off_t size = lseek(file, 0, SEEK_END);
  const off_t from = std::max<off_t>(0, size - static_cast<off_t>(sizeof tail));
  const ssize_t n = pread(file, tail, sizeof tail, from);
  std::string all(tail, n > 0 ? static_cast<std::size_t>(n) : 0);
  while (!all.empty() && (all.back() == '\n' || all.back() == ' ')) all.pop_back();
  return all.substr(all.rfind('\n') == std::string::npos ? 0 : all.rfind('\n') + 1);
}

}  // namespace

std::unique_ptr<BenchPeer> BenchPeer::start(const std::string& python, const std::function<bool()>& stop,
                                            std::string& why) {
  std::unique_ptr<BenchPeer> peer(new BenchPeer(stop));
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) {
    why = std::string("no pipe: ") + std::strerror(errno);
    return nullptr;
  }
  peer->to_ = in[1];
  peer->from_ = out[0];
  peer->errors_ = memfd_create("peer-errors", MFD_CLOEXEC);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, peer->errors_, STDERR_FILENO);
  // A group of its own: Ctrl-C is for the tool, which ends the peer in order.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);

  std::string script(bench_peer_script), flag = "-c", program = python;
  char* arguments[] = {program.data(), flag.data(), script.data(), nullptr};
  const int error = posix_spawnp(&peer->process_, python.c_str(), &files, &attributes, arguments, environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  close(in[0]);
  close(out[1]);
  if (error != 0) {
    peer->process_ = -1;
    why = python + " cannot be started: " + std::strerror(error);
    return nullptr;
  }
  try {
    peer->hello_ = nlohmann::json::parse(peer->read_line(patience_start));
  } catch (const std::exception& e) {  // what it says may be anything: it may not even be Python
    why = python + ": " + e.what();
    return nullptr;
  }
  if (peer->hello_.contains("error")) {
    why = python + ": " + peer->hello_["error"].get<std::string>();
    return nullptr;
  }
  return peer;
}

BenchPeer::~BenchPeer() {
  if (to_ >= 0) close(to_);  // the end of its input ends it
  if (process_ > 0) {
    using namespace std::chrono;
    for (const auto end = steady_clock::now() + seconds(5); waitpid(process_, nullptr, WNOHANG) == 0;) {
      if (steady_clock::now() > end) kill(process_, SIGKILL);
      usleep(10000);
    }
  }
  if (from_ >= 0) close(from_);
  if (errors_ >= 0) close(errors_);
}

void BenchPeer::lose(const std::string& why) {
  if (process_ > 0) {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    process_ = -1;
  }
  const std::string said = last_line(errors_);
  throw BenchPeerLost(why + (said.empty() ? "" : "; it last said: " + said));
}

std::string BenchPeer::read_line(double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (pending_.find('\n') == std::string::npos) {
    if (stop_ && stop_()) lose("the peer was stopped");
    if (Clock::now() > end) lose(text("the peer did not answer for %.0f s", seconds));
    pollfd wait = {from_, POLLIN, 0};
    if (poll(&wait, 1, 200) <= 0) continue;
    char block[4096];
    const ssize_t n = read(from_, block, sizeof block);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) lose("the peer process ended");
    pending_.append(block, static_cast<std::size_t>(n));
  }
  const std::size_t at = pending_.find('\n');
  std::string line = pending_.substr(0, at);
  pending_.erase(0, at + 1);
  return line;
}

nlohmann::json BenchPeer::ask(const nlohmann::json& request) {
  if (process_ < 0) throw BenchPeerLost("the peer process is gone");
  const std::string line = request.dump() + "\n";
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t n = write(to_, line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) lose("the peer process ended");
    done += static_cast<std::size_t>(n);
  }
  const std::string answer = read_line(patience_answer);
  try {
    return nlohmann::json::parse(answer);
  } catch (const std::exception&) {
    lose("the peer's answer cannot be read: " + answer.substr(0, 200));
  }
}

}  // namespace attest
