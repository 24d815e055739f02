#include <gtest/gtest.h>

#include "impl/tests/schedule_sweep.h"

namespace attn::test {
namespace {

TEST(TileSchedule, VisitsEveryVisiblePairOnce) { EXPECT_EQ(sweep_schedule(14, 6), ""); }

TEST(TileSchedule, BlocksBeyondTheSequenceDoNotOverflow) {
  constexpr Index huge = INT64_MAX;
  EXPECT_EQ(block_count({0, 10}, huge), 1);
  EXPECT_EQ(block_range({0, 10}, huge, 0).end, 10);
  EXPECT_EQ(plan_splits(10, huge, 1).keys(huge - 1).size(), 0);
  EXPECT_EQ(plan_splits(10, 3, huge).keys(0).size(), 10);
  EXPECT_EQ(plan_splits(10, 3, huge).keys(1).size(), 0);
  EXPECT_EQ(full_tiles({4, 10, 10, CausalAlignment::none}, {0, 4}, {0, 10}, huge), 1);
}

}  // namespace
}  // namespace attn::test
