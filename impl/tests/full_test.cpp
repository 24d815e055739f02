// The sweeps that take minutes: program impl_full_tests, label full.
#include <gtest/gtest.h>

#include "impl/registry.h"
#include "impl/tests/exp_sweep.h"
#include "impl/tests/schedule_sweep.h"

namespace attn::test {
namespace {

TEST(TileSchedule, VisitsEveryVisiblePairOnceFull) { EXPECT_EQ(sweep_schedule(40, 12), ""); }

TEST(Exp, Fp32KeepsItsContractFull) {
  const SweepResult r = sweep_fp32(0, 1);
  print("exp fp32, every negative float", r);
  EXPECT_EQ(r.count, 0x7f800001);
  EXPECT_LE(r.worst, find_preset("fp32.fa2")->exp_error);
  EXPECT_LE(r.below_normal, 1 + find_preset("fp32.fa2")->exp_error);
}

TEST(Exp, Fp64KeepsItsContractFull) {
  const SweepResult r = sweep_fp64(500000, 2);
  print("exp fp64", r);
  EXPECT_GE(r.count, 2000000);
  EXPECT_LE(r.worst, find_preset("fp64.fa2")->exp_error);
  EXPECT_LE(r.below_normal, 1 + find_preset("fp64.fa2")->exp_error);
}

}  // namespace
}  // namespace attn::test
