// A sample of the grid that grid_full.cpp runs whole.
#include <gtest/gtest.h>

#include "properties/generate.h"
#include "properties/tests/grid.h"

namespace attest {
namespace {

TEST(Grid, HasForwardKernelsOfEveryAlgorithmAndTheStep) {
  int forward = 0, step = 0;
  for (const attn_kernel* k : grid::kernels()) ++(k->op == ATTN_OP_STEP ? step : forward);
  EXPECT_GE(forward, 3);
  EXPECT_GE(step, 1);
}

TEST(Grid, SampledEqualityTo1e9) {
  const std::uint64_t seed = 20;
  Random random(seed);
  const auto dims = grid::dimensions();
  // Every pair of dimensions once; edges of Tq and Tk more often than chance would have them.
  const std::vector<std::int64_t> edges{1, 2, 15, 16, 17, 31, 32, 33, 63, 64};
  const auto length = [&] { return random.chance(0.5) ? random.pick(edges) : random.between(1, 64); };
  for (const auto& [d, d_v] : dims) {
    std::vector<std::int64_t> blocks{1, random.between(2, 16), random.between(17, 128)};
    const std::string why = grid::check(length(), length(), d, d_v, blocks);
    ASSERT_EQ(why, "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace attest
