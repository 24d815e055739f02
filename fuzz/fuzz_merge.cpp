// Claim: no merge kernel breaks a law over any states: any tree, any order, empty states anywhere.
#include "fuzz/case_target.h"

attest::fuzz::CaseTarget& attest::fuzz::target() {
  static CaseTarget only("merge", subjects_of(Op::merge));
  return only;
}
