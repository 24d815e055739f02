// The hunt: a multi-start local search for the case on which a kernel's error is the largest part of its bound. It sees
// what every law sees (outputs, truth, bound), so it hunts any kernel, a plugin's too.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "oracle/case.h"
#include "properties/law.h"

namespace attest {

// What one case says of a kernel. Only elements that PASS count: a vacuous bound admits anything.
struct HuntScore {
  Outcome status = Outcome::pass;  // fail: an element is outside of its bound, or the kernel did not run
  std::string reason;              // one line unless the status is pass
  double ratio = 0;                // largest error/bound: of O (forward), of m, l and acc (step, merge)
  double lse = 0;                  // the same of LSE (forward)
  double error = 0, bound = 0;     // at the element of the largest ratio
  std::string where;               // that element: "o[b=0,h=0,i=0,e=1]"
  std::int64_t i = 0, e = 0;       // its row and column
};

// Runs the kernel once and judges every element on the deterministic tier, the oracle's radius below 2^-10 of the
// bound. Raises CaseError for a case that cannot be made into a problem.
HuntScore hunt_score(const Kernel& kernel, const Case& c);

struct HuntOptions {
  std::uint64_t seed = 1;
  std::int64_t evaluations = 20000;  // runs of the kernel: the budget
  bool stored = false;               // O as stored instead of before output rounding
  std::vector<Case> starts;          // cases to climb from, besides generated ones
  bool climb = true;                 // false: generated cases alone, the yardstick for the climb
  std::function<bool(std::int64_t done, double best)> stop;  // asked before every run; may be empty
};

struct HuntResult {
  Case worst;              // values are literal and exact in the kernel's format
  HuntScore score;         // of `worst`; status fail: a violation, and the hunt ended there
  double lse = 0;          // largest of LSE over all cases met; not climbed for
  bool stored = false;     // also if the kernel refuses O in the accumulator's format
  bool truncated = false;  // `stop` ended it
  std::int64_t evaluations = 0, rejected = 0;
};

// A function of kernel and options alone.
HuntResult hunt(const Kernel& kernel, const HuntOptions& options);

}  // namespace attest
