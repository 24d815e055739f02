#include "reports/tool/crash.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>

#include "reports/tool/text.h"

namespace attest {
namespace {

// What the signal handler may touch: plain pointers, published before the check starts. It allocates nothing.
struct Slot {
  std::atomic<bool> taken{false};
  std::atomic<const char*> line{nullptr};  // set last: the slot is readable while it is not null
  const char* path = nullptr;
  const char* text = nullptr;
  std::size_t text_size = 0;
};
std::array<Slot, 512> slots;
thread_local int current = -1;
char directory_path[4096] = "";

void say(const char* words) {
  const ssize_t ignored = write(STDERR_FILENO, words, std::strlen(words));
  (void)ignored;
}

void save(const Slot& slot) {
  const char* line = slot.line.load();
  if (!line) return;
  if (slot.text_size > 0) {
    mkdir(directory_path, 0777);
    const int file = open(slot.path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (file >= 0) {
      const ssize_t ignored = write(file, slot.text, slot.text_size);
      (void)ignored;
      close(file);
    }
  }
  say(line);
}

void on_crash(int signal) {
  std::signal(signal, SIG_DFL);
  say(signal == SIGSEGV   ? "\nCRASH (SIGSEGV)\n"
      : signal == SIGBUS  ? "\nCRASH (SIGBUS)\n"
      : signal == SIGFPE  ? "\nCRASH (SIGFPE)\n"
      : signal == SIGILL  ? "\nCRASH (SIGILL)\n"
      : signal == SIGABRT ? "\nCRASH (SIGABRT)\n"
                          : "\nCRASH\n");
  if (current >= 0) {
    save(slots[static_cast<std::size_t>(current)]);
  } else {
    say("in a thread of the kernel's own; one of the checks that were running:\n");
    for (const Slot& slot : slots) save(slot);
  }
  _exit(1);
}

constexpr bool under_sanitizer =
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    true;
#else
    false;
#endif
#else
    false;
#endif

}  // namespace

void install_crash_notes(const std::string& directory) {
  std::strncpy(directory_path, directory.c_str(), sizeof directory_path - 1);
  if (under_sanitizer) return;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(signal, on_crash);
}

CrashNote::CrashNote(const std::string& file, const std::string& case_text, const std::string& kernel,
                     const std::string& law, const std::string& plugin_flags)
    : slot_(-1), path_(case_text.empty() ? file : std::string(directory_path) + "/" + file), text_(case_text) {
  line_ = "FAIL " + law + "  " + kernel + ": crashed; reproduce: " + tool_command() + " check " + shell_quoted(path_) +
          " --kernels " + kernel + " --laws " + law + plugin_flags + "\n";
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].taken.exchange(true)) continue;
    slots[i].path = path_.c_str();
    slots[i].text = text_.data();
    slots[i].text_size = text_.size();
    slots[i].line.store(line_.c_str());
    current = slot_ = static_cast<int>(i);
    return;
  }
}

CrashNote::~CrashNote() {
  if (slot_ < 0) return;
  Slot& slot = slots[static_cast<std::size_t>(slot_)];
  slot.line.store(nullptr);
  current = -1;
  slot.taken.store(false);
}

}  // namespace attest
