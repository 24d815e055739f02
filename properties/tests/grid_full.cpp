// The grid: all Tq, Tk in 1..64 and all block sizes 1..128, plain and causal; (d, d_v) cycle through every pair.
#include <gtest/gtest.h>

#include <numeric>

#include "properties/tests/grid.h"

namespace attest {
namespace {

class Grid : public testing::TestWithParam<std::int64_t> {};

// One test per range of eight Tq, so that two cores share the work.
TEST_P(Grid, EveryBlockSizeEqualsTwoPassTo1e9) {
  const auto dims = grid::dimensions();
  std::vector<std::int64_t> blocks(128);
  std::iota(blocks.begin(), blocks.end(), 1);
  for (std::int64_t tq = GetParam(); tq < GetParam() + 8; ++tq)
    for (std::int64_t tk = 1; tk <= 64; ++tk) {
      // 4096 shapes over 100 pairs: each pair meets about 41 shapes.
      const auto& [d, d_v] = dims[((tq - 1) * 64 + tk - 1) % dims.size()];
      ASSERT_EQ(grid::check(tq, tk, d, d_v, blocks), "");
    }
}

INSTANTIATE_TEST_SUITE_P(Tq, Grid, testing::Range<std::int64_t>(1, 65, 8));

}  // namespace
}  // namespace attest
