// The whole kill matrix over three seeds: every bug dies in time, nothing correct is blamed, every law earns its place.
#include <gtest/gtest.h>

#include "reports/tests/run_tool.h"

namespace attest::testing {
namespace {

TEST(KillMatrix, HoldsOverThreeSeeds) {
  const Ran r = run_tool("mutants --seeds 1,2,3 --quiet");
  EXPECT_EQ(r.code, 0) << r.out << r.err;
}

}  // namespace
}  // namespace attest::testing
