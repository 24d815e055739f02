// What the targets over kernels share: genome -> case -> check_case() under `encloses` and one more law.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fuzz/case_record.h"
#include "fuzz/subjects.h"

namespace attest::fuzz {

class CaseTarget {
 public:
  // name: of the findings' files.
  CaseTarget(std::string name, std::vector<Subject> subjects);
  // Says how many checks were made, passed and rejected, as run() does now and then.
  ~CaseTarget();
  CaseTarget(const CaseTarget&) = delete;
  CaseTarget& operator=(const CaseTarget&) = delete;

  // One input. A finding is saved as NAME-HASH.case in the folder that ATTEST_FUZZ_CASES names, or the working
  // directory, announced on standard error, and ends the process by abort(); with that variable empty it only aborts.
  // A device that is lost is a finding. While a kernel of a device runs, its case is in running-NAME-PID.case there.
  void run(std::span<const std::uint8_t> bytes);

  // Largest error/bound of O before it is rounded, or of states, of what passed so far, over all kernels: never
  // above 1.
  double worst() const;

 private:
  Case case_of(const Genome& genome, const Subject& subject, const Law& law) const;
  void check(const Case& c, std::size_t subject, const Law& law);
  CheckResult check_recorded(const Case& c, const Subject& subject, const Law& law);
  [[noreturn]] void report(Case c, const Subject& subject, const Law& law, const CheckResult& result);

  std::string name_, folder_;
  std::optional<CaseRecord> record_;
  std::vector<Subject> subjects_;
  std::vector<double> worst_;  // error/bound of each subject so far
};

// What a target over kernels defines: its kernels and its name. Made on the first call.
CaseTarget& target();

}  // namespace attest::fuzz
