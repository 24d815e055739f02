// How a worker process ended, in words: what its signal handler saw, else what its exit status says.
#pragma once

#include <cstddef>
#include <string>

namespace attest {

// What a worker leaves behind, in memory shared with the process that reads it.
class LastWords {
 public:
  LastWords();  // raises UsageError if there is no memory to share
  ~LastWords();
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;

  // In the worker, after the fork: SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT are described before they end it. Not
  // under a sanitizer, which prints its own report.
  void speak_here();
  // In the worker: what "memory is exhausted" means for a crash; bytes of private memory, 0: no limit.
  void set_memory_limit(std::size_t bytes);

  // In the parent. `status` as waitpid() gives it. The words continue "the kernel ...", and hold nothing that differs
  // from run to run, such as addresses. Forgets them.
  std::string take(int status);

  struct Page;

 private:
  Page* page_;
};

// Private memory of this process in bytes, from /proc; 0 if it cannot be read. Safe in a signal handler.
std::size_t private_memory() noexcept;

}  // namespace attest
