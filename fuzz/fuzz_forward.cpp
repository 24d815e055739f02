// Claim: no forward kernel breaks a law on any small case. Each input names a case, a kernel and a law beside
// `encloses`. Errors are judged against derived bounds, so inputs found by search are fair: the statistical laws, which
// are not, are left out.
#include "fuzz/case_target.h"

attest::fuzz::CaseTarget& attest::fuzz::target() {
  static CaseTarget only("forward", subjects_of(Op::forward));
  return only;
}
