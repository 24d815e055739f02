// What came of the checks, pair by pair, and what that means for the gate. Filled in any order, the same in the end.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/tool/plan.h"
#include "reports/tool/waivers.h"

namespace attest {

using Counts = std::array<std::int64_t, 6>;  // by Outcome
// "pass", "not_run", ...: an Outcome as JSON and reports name it.
std::string key(Outcome o);

struct Failure {
  std::size_t order = 0;  // in the plan
  bool replayed = false;  // from the corpus
  Case data;
  CheckResult result;
  std::string file;     // where the case is: saved for a generated one, the corpus file otherwise
  std::string command;  // reproduces it
  std::string unsaved;  // why there is no file, if there is none
};

enum class PairVerdict { pass, fail, waived, no_pass, not_run, not_applicable, not_reached };
std::string_view name(PairVerdict v);

struct PairTally {
  Counts counts{};
  std::int64_t inapplicable = 0;  // generated cases on which the law does not bind this kernel
  double worst_ratio = 0;
  std::string worst_case;
  std::int64_t skipped = 0;        // checks that were not made because of `stopped`
  std::string stopped;             // "after 3 crashes": the kernel cost workers, and is not run under this law any more
  std::optional<Failure> failure;  // the first in the plan's order, generated ones first: they shrink
  std::string reason;              // why there is no PASS, from the first check that was none
  PairVerdict verdict = PairVerdict::not_reached;

  std::int64_t checks() const;
  // The kernel has no device here: NOT_RUN, once.
  void add_absent(const std::string& why);
  void add_inapplicable(std::size_t order, const std::string& why);
  void add(std::size_t order, bool replayed, const std::string& case_name, const Case& c, const CheckResult& result);

 private:
  std::size_t worst_order_ = 0, reason_order_ = SIZE_MAX, inapplicable_order_ = SIZE_MAX;
  std::string inapplicable_reason_;
  friend struct GateResult;
};

struct WaiverState {
  Waiver waiver;
  std::string state;  // "used", "expired", "gone" (the failure it waives), "not judged" (not part of this run)
  bool fails_gate = false;
};

struct GateResult {
  std::vector<PairTally> tallies;  // one for each pair of the plan
  std::vector<WaiverState> waivers;
  std::vector<std::string> strays;   // kernels that ended a worker between two checks: one line each, and a failure
  std::vector<std::string> missing;  // required, without a PASS: one line each
  std::int64_t planned = 0, done = 0;
  bool truncated = false, interrupted = false;
  double seconds = 0;

  Counts counts() const;
  std::int64_t checks() const;
  // Fills in every pair's verdict, the waivers' states and what is missing.
  void conclude(const Plan& plan, const GateOptions& options, const std::vector<Waiver>& ledger);
  bool failed() const;
  // Whether nothing ran, since no kernel has a device here, and nothing was required to.
  bool nothing_ran() const;
  std::string_view verdict() const;  // "pass", "fail", "incomplete", "interrupted", "not_run"
  int exit_code() const;             // 0 (pass, not_run), 1, 3, 130
};

}  // namespace attest
