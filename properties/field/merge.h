// A merge kernel in the hands of a project that merges two partial results (O, LSE).
#pragma once

#include <string>

#include "properties/field/field.h"

namespace attest::field {

struct MergeResult {
  bool ran = false;      // false: the kernel refuses
  bool touched = false;  // as in Opinion
  std::string failure;   // "" if the test passes
};

// A kernel of unnormalised states is given the same pair as (m, l, acc) = (LSE, 1, O), and (-inf, 0, 0) where a part is
// empty; its result is read as O = acc / l and LSE = m + ln l.
MergeResult run_merge_test(const MergeTest& test, const Kernel& kernel, const Kernel* correct, std::uint64_t seed);

}  // namespace attest::field
