// Claim: no CUDA kernel breaks a law on any small case, whatever its operation. An error that ends the device's context
// is a finding too: the process ends with the case in hand, and the next begins with a whole context.
#include "fuzz/case_target.h"
#include "impl/attention.h"

attest::fuzz::CaseTarget& attest::fuzz::target() {
  static CaseTarget only("cuda", subjects_on(ATTN_DEVICE_CUDA));
  return only;
}

// CUDA maps memory where AddressSanitizer keeps a gap, and what the driver holds at the end is not a leak of ours. Read
// by a build under that sanitizer, and by no other.
extern "C" const char* __asan_default_options();
extern "C" __attribute__((used)) const char* __asan_default_options() { return "protect_shadow_gap=0:detect_leaks=0"; }
