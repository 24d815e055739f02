#include "reports/tool/last_words.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

#include "oracle/guard_pages.h"
#include "reports/tool/isolation.h"
#include "reports/tool/text.h"

namespace attest {

struct LastWords::Page {
  std::size_t memory_limit = 0;
  std::atomic<bool> spoken{false};
  char words[512] = "";
};

namespace {

LastWords::Page* page_here = nullptr;

// Text without printf, which a signal handler must not call.
class Words {
 public:
  explicit Words(LastWords::Page& page) : page_(page) {}
  Words& operator<<(const char* text) {
    for (; *text && n_ + 1 < sizeof page_.words; ++text) page_.words[n_++] = *text;
    page_.words[n_] = 0;
    return *this;
  }
  Words& operator<<(std::int64_t number) {
    char digits[24];
    int i = 23;
    digits[i] = 0;
    std::uint64_t rest = number < 0 ? 0 - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
    do digits[--i] = static_cast<char>('0' + rest % 10);
    while (rest /= 10);
    if (number < 0) digits[--i] = '-';
    return *this << digits + i;
  }

 private:
  LastWords::Page& page_;
  std::size_t n_ = 0;
};

const char* signal_name(int signal) {
  switch (signal) {
    case SIGSEGV:
      return "SIGSEGV";
    case SIGBUS:
      return "SIGBUS";
    case SIGFPE:
      return "SIGFPE";
    case SIGILL:
      return "SIGILL";
    case SIGABRT:
      return "SIGABRT";
    default:
      return nullptr;
  }
}

#if defined(__x86_64__)
const char* kind_of_access(const ucontext_t* context) {
  return (context->uc_mcontext.gregs[REG_ERR] & 2) != 0 ? "wrote" : "read";
}
std::uintptr_t stack_pointer(const ucontext_t* context) {
  return static_cast<std::uintptr_t>(context->uc_mcontext.gregs[REG_RSP]);
}
#else
const char* kind_of_access(const ucontext_t*) { return "touched"; }
std::uintptr_t stack_pointer(const ucontext_t*) { return 0; }
#endif

void say_where(Words& words, const siginfo_t* info, const ucontext_t* context) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const Located at = locate_in_guard_pages(info->si_addr);
  const std::int64_t beyond = at.offset < 0 ? -at.offset : at.offset - at.size + 1;
  const std::uintptr_t stack = stack_pointer(context);
  if (info->si_code == SI_KERNEL)
    words << ": an address that cannot exist";
  else if (at.name && at.offset >= 0 && at.offset < at.size)
    words << ": wrote to " << at.name << " at byte " << at.offset << " of its memory; inputs must not be written";
  else if (at.name)
    words << ": " << kind_of_access(context) << " " << beyond << (beyond == 1 ? " byte " : " bytes ")
          << (at.offset < 0 ? "before the begin of " : "past the end of ") << at.name;
  else if (address < 65536)
    words << ": " << kind_of_access(context) << " through a null pointer";
  else if (stack != 0 && address + 65536 > stack && address < stack + 65536)
    words << ": the stack overflowed";
  else
    words << ": " << kind_of_access(context) << " an address outside of every tensor";
}

void on_signal(int signal, siginfo_t* info, void* context) {
  // SA_RESETHAND: when this returns, the same instruction (or abort()) ends the process with the signal's own status,
  // and a crash in here does so at once.
  const int saved = errno;
  LastWords::Page& page = *page_here;
  if (!page.spoken.exchange(true)) {
    Words words(page);
    words << "crashed with " << signal_name(signal);
    if (signal == SIGABRT)
      words << ": abort(), a failed assertion, or an exception that nobody caught";
    else if (signal == SIGSEGV || signal == SIGBUS)
      say_where(words, info, static_cast<const ucontext_t*>(context));
    // An allocation that fails does so a little below the limit.
    if (page.memory_limit > 0 && private_memory() > page.memory_limit - page.memory_limit / 10)
      words << "; its memory is exhausted (--limit-memory)";
  }
  errno = saved;
}

}  // namespace

LastWords::LastWords() {
  void* memory = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw UsageError(std::string("no memory for a worker: ") + std::strerror(errno));
  page_ = new (memory) Page;
}

LastWords::~LastWords() { munmap(page_, sizeof(Page)); }

void LastWords::speak_here() {
  if (under_sanitizer()) return;
  page_here = page_;
  // A stack that has overflowed has no room for a handler.
  static char handler_stack[1 << 16];
  const stack_t stack = {handler_stack, 0, sizeof handler_stack};
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(signal, &action, nullptr);
}

void LastWords::set_memory_limit(std::size_t bytes) { page_->memory_limit = bytes; }

std::string LastWords::take(int status) {
  const bool spoken = page_->spoken.exchange(false);
  if (WIFEXITED(status)) {
    const std::string how = "ended the process with exit status " + std::to_string(WEXITSTATUS(status));
    return under_sanitizer() ? how + " (or the sanitizer did; then its report is above)" : how;
  }
  if (spoken) return page_->words;
  const int signal = WTERMSIG(status);
  if (signal == SIGKILL) return "was killed from outside (SIGKILL): most often because the machine ran out of memory";
  const char* name = signal_name(signal);
  return "crashed with " + (name ? std::string(name) : "signal " + std::to_string(signal));
}

std::size_t private_memory() noexcept {
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[256];
  const ssize_t n = read(file, text, sizeof text - 1);
  close(file);
  // Pages: size, resident, shared, text, library, data and stack.
  std::size_t value = 0;
  int field = 0;
  for (ssize_t i = 0; i < n && field < 6; ++i) {
    if (text[i] >= '0' && text[i] <= '9') {
      value = value * 10 + static_cast<std::size_t>(text[i] - '0');
    } else {
      if (++field < 6) value = 0;
    }
  }
  return value * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace attest
