// Claim: no step kernel breaks a law from any state over any block of scores, blocked keys and empty states included.
#include "fuzz/case_target.h"

attest::fuzz::CaseTarget& attest::fuzz::target() {
  static CaseTarget only("step", subjects_of(Op::step));
  return only;
}
