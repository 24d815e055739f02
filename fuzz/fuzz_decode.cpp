// Claim: no kernel that merges splits of the keys (Flash-Decoding) breaks a law on any small case, empty splits and
// splits without a visible key included.
#include "fuzz/case_target.h"

attest::fuzz::CaseTarget& attest::fuzz::target() {
  static CaseTarget only("decode", subjects_of(Op::forward, ATTN_ALG_SPLIT));
  return only;
}
