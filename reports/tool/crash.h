// A kernel that crashes is a result: the case it was given is written down, and the tool says which kernel, law and
// file.
#pragma once

#include <string>

namespace attest {

// Puts the notes into memory that a child process shares, so that they outlive it. To be called before the fork.
void share_crash_notes();

// From here on SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT save the case of the crashing thread's check (of all
// running checks if a kernel's own thread crashed) in `directory`, print one line for each and exit 1. Under
// AddressSanitizer the sanitizer's own report is kept instead. An exit() in a kernel ends the process without
// destructors, under the feet of no other check.
void install_crash_notes(const std::string& directory);

// The same for the notes that a process left which is gone. Returns how many checks were running.
int save_notes_left();

// For the duration of one check on this thread. `file` is a name inside the directory; empty text: the case is a file
// already, `file` is its path.
class CrashNote {
 public:
  CrashNote(const std::string& file, const std::string& case_text, const std::string& kernel, const std::string& law,
            const std::string& plugin_flags);
  ~CrashNote();
  CrashNote(const CrashNote&) = delete;
  CrashNote& operator=(const CrashNote&) = delete;

 private:
  int slot_;
};

}  // namespace attest
