// Files that a gate writes: there before the run, or refused; never a stale report, never an empty directory left.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reports/tool/plan.h"

namespace attest {

// Before anything is known: reports that say that the run has not ended. Raises UsageError: a file that cannot be
// written is better known before the run than after it.
void begin_reports(const GateOptions& options);

// Replaces the JSON report, if it is a file. A gate that is killed leaves what it had. An error is not of interest
// before the end: the last write says it.
void write_partial(const GateOptions& options, const std::string& report);

// The report of a run that was refused.
std::string error_json(const std::string& message);

// The directory of failing cases: there and writable before the run (else UsageError), gone after it if this run made
// it and left it empty.
class OutDirectory {
 public:
  explicit OutDirectory(const std::string& path);
  ~OutDirectory() { tidy(); }
  OutDirectory(const OutDirectory&) = delete;
  OutDirectory& operator=(const OutDirectory&) = delete;

 private:
  void tidy() const;
  std::vector<std::filesystem::path> made_;  // innermost first
};

}  // namespace attest
