// No kernel that keeps its Contract leaves its bounds: simulated kernels, a reference far above them, all families.
#include <gtest/gtest.h>

#include <cstdio>

#include "oracle/tests/bound_forward_sweep.h"

namespace attest::bound_test {
namespace {

TEST(BoundForward, HoldsForEverySimulatedKernel) { sweep(8, 1); }

// Where roundings repeat, errors grow with n and not with its root: equal addends in one binade of the accumulator
// round alike (W1), equal gaps share one rounding of P (W2). Ungrouped sums of squares fail here.
TEST(BoundForward, ExpectedTierHoldsOnLongRowsOfRepeatedRoundings) {
  for (const SimulatedKernel& s : make_setups()) {
    if (s.contract.acc_dtype == ATTN_FP64 || s.contract.sum_order != ATTN_SUM_SEQUENTIAL || !s.tell_cuts) continue;
    Tally t;
    for (const Kind kind : {Kind::equal_constant, Kind::two_level, Kind::near_duplicates, Kind::ascending}) {
      for (std::uint64_t seed = 0; seed < 2; ++seed) check_row(s, kind, 3000, 2, 12, seed * 17 + 3, t);
    }
    std::printf("%-32s long rows: expected O %.3f (%s), LSE %.3f\n", s.name.c_str(), t.expected_o.ratio,
                t.expected_o.where.c_str(), t.expected_lse.ratio);
    EXPECT_EQ(t.violations, 0) << s.name;
    EXPECT_GT(t.expected, 0) << s.name;
  }
}

}  // namespace
}  // namespace attest::bound_test
