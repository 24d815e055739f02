// The case that is being checked, on disk while it is checked: a kernel that kills its process, or is killed with it,
// leaves the case behind.
#pragma once

#include <string>
#include <string_view>

#include "oracle/case.h"

namespace attest::fuzz {

// One file, written over and over: no atomic rename and no sync, which would take longer than the check. What a process
// has written stays there when it is killed; only a machine that goes down may lose it.
class CaseRecord {
 public:
  // Nothing is made before the first case.
  explicit CaseRecord(std::string path);
  ~CaseRecord();
  CaseRecord(const CaseRecord&) = delete;
  CaseRecord& operator=(const CaseRecord&) = delete;

  // Raises std::runtime_error when it cannot be written: a search whose findings would be lost must not go on.
  void begin(const Case& c);
  // The check has ended: the case has nothing to say. Until the next the file begins with something else than '{'.
  void end();
  // It has been said otherwise.
  void discard();

 private:
  void write(std::string_view text);  // from the file's begin on
  [[noreturn]] void fail() const;

  std::string path_;
  std::size_t longest_ = 0;
  int file_ = -1;
};

}  // namespace attest::fuzz
