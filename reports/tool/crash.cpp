#include "reports/tool/crash.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "reports/tool/guard.h"
#include "reports/tool/isolation.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

// What the signal handler and the parent process may touch: plain bytes in shared memory, written before the check
// starts. Pages that no note uses cost nothing.
struct Slot {
  std::atomic<bool> taken{false};
  std::atomic<bool> ready{false};  // set last: the slot is readable while it is true
  std::size_t line_size = 0, text_size = 0;
  char path[4096] = "";
  char line[16384] = "";
  char text[1 << 18] = "";
};
struct Notes {
  char directory[4096];
  std::array<Slot, 512> slots;
};
Notes* notes = nullptr;
thread_local int current = -1;

void say(const char* words, std::size_t size) {
  const ssize_t ignored = write(STDERR_FILENO, words, size);
  (void)ignored;
}
void say(const char* words) { say(words, std::strlen(words)); }

bool save(const Slot& slot) {
  if (!slot.ready.load()) return false;
  if (slot.text_size > 0) {
    mkdir(notes->directory, 0777);
    const int file = open(slot.path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file >= 0) {
      const ssize_t ignored = write(file, slot.text, slot.text_size);
      (void)ignored;
      close(file);
    }
  }
  say(slot.line, slot.line_size);
  return true;
}

void on_crash(int signal) {
  // Several threads may crash at once: the first one reports, the others wait for its _exit. A crash in here is final.
  static std::atomic<bool> reporting{false};
  static thread_local bool here = false;
  if (here) {
    std::signal(signal, SIG_DFL);
    raise(signal);
    return;
  }
  here = true;
  while (reporting.exchange(true)) pause();
  say(signal == SIGSEGV   ? "\nCRASH (SIGSEGV)\n"
      : signal == SIGBUS  ? "\nCRASH (SIGBUS)\n"
      : signal == SIGFPE  ? "\nCRASH (SIGFPE)\n"
      : signal == SIGILL  ? "\nCRASH (SIGILL)\n"
      : signal == SIGABRT ? "\nCRASH (SIGABRT)\n"
                          : "\nCRASH\n");
  if (current >= 0) {
    save(notes->slots[static_cast<std::size_t>(current)]);
  } else {
    say("in a thread of the kernel's own; one of the checks that were running:\n");
    for (const Slot& slot : notes->slots) save(slot);
  }
  tell_parent(Ending::crashed, 1);
  _exit(1);
}

// exit() called by a kernel: static destructors would pull the ground from under the checks of other threads. The
// parent process says what happened; it hears of this check alone if the thread is one of ours.
void on_early_exit(int status, void*) {
  if (parent_was_told()) return;
  for (std::size_t i = 0; current >= 0 && i < notes->slots.size(); ++i)
    if (i != static_cast<std::size_t>(current)) notes->slots[i].ready.store(false);
  _exit(status);
}

}  // namespace

void share_crash_notes() {
  if (notes) return;
  void* memory =
      mmap(nullptr, sizeof(Notes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw UsageError(std::string("no memory for crash notes: ") + std::strerror(errno));
  // Fresh pages are zero, which is every slot free and every text empty; constructing them would touch all of them.
  notes = static_cast<Notes*>(memory);
}

void install_crash_notes(const std::string& directory) {
  share_crash_notes();
  std::strncpy(notes->directory, directory.c_str(), sizeof notes->directory - 1);
  on_exit(on_early_exit, nullptr);
  if (under_sanitizer()) return;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(signal, on_crash);
}

int save_notes_left() {
  int running = 0;
  for (Slot& slot : notes->slots) {
    std::string line(slot.line, slot.line_size);
    if (const auto at = line.find(": crashed; "); slot.ready && at != std::string::npos) {
      line.replace(at, 11, ": ended the process; ");
      slot.line_size = std::min(line.size(), sizeof slot.line);
      std::memcpy(slot.line, line.data(), slot.line_size);
    }
    running += save(slot);
  }
  return running;
}

CrashNote::CrashNote(const std::string& file, const std::string& case_text, const std::string& kernel,
                     const std::string& law, const std::string& plugin_flags)
    : slot_(-1) {
  share_crash_notes();
  const std::string path = case_text.empty() ? file : std::string(notes->directory) + "/" + file;
  const bool fits = case_text.size() <= sizeof Slot::text && path.size() < sizeof Slot::path;
  std::string line = "FAIL " + law + "  " + kernel + ": crashed; ";
  line += fits ? "reproduce: " + tool_command() + " check " + shell_quoted(path) + " --kernels " + kernel + " --laws " +
                     law + plugin_flags + "\n"
               : "the case is too large to be saved: " + std::to_string(case_text.size()) + " bytes\n";
  for (std::size_t i = 0; i < notes->slots.size(); ++i) {
    Slot& slot = notes->slots[i];
    if (slot.taken.exchange(true)) continue;
    slot.line_size = std::min(line.size(), sizeof slot.line);
    slot.text_size = fits ? case_text.size() : 0;
    std::memcpy(slot.line, line.data(), slot.line_size);
    std::memcpy(slot.text, case_text.data(), slot.text_size);
    std::memcpy(slot.path, path.c_str(), fits ? path.size() + 1 : 0);
    slot.ready.store(true);
    current = slot_ = static_cast<int>(i);
    return;
  }
}

CrashNote::~CrashNote() {
  if (slot_ < 0) return;
  Slot& slot = notes->slots[static_cast<std::size_t>(slot_)];
  slot.ready.store(false);
  current = -1;
  slot.taken.store(false);
}

}  // namespace attest
