// The table of classes in TRUTH.md, row by row, on every tier: empty rows, NaN, infinities.
#include <gtest/gtest.h>

#include <mpfr.h>

#include <limits>
#include <thread>

#include "oracle/tests/truth_support.h"

namespace attest::test {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double quiet_nan = std::numeric_limits<double>::quiet_NaN();
using enum TruthKind;

class Classes : public ::testing::TestWithParam<Tier> {
 protected:
  // Three keys, two columns, ordinary values; scores 1, 2, 3.
  Inputs in = [] {
    Inputs i(3, 2, 2);
    i.q = {1, 0.5};
    i.k = {1, 0, 2, 0, 3, 0};
    i.v = {1, 2, 3, 4, 5, 6};
    return i;
  }();
  RowTruth run() const { return truth(in.row(), GetParam()); }
  void expect(TruthKind o0, TruthKind o1, TruthKind lse) const {
    const RowTruth t = run();
    ASSERT_EQ(t.o.size(), 2u);
    EXPECT_EQ(t.o[0].kind, o0);
    EXPECT_EQ(t.o[1].kind, o1);
    EXPECT_EQ(t.lse.kind, lse);
    for (std::int64_t e = -1; e < 2; ++e)  // one element by itself has the same class
      EXPECT_EQ(element_truth(in.row(), {}, e, GetParam()).kind, e < 0 ? lse : e == 0 ? o0 : o1);
    for (const TruthElement& e : {t.o[0], t.o[1], t.lse})
      EXPECT_TRUE(e.kind == finite || (e.hi == 0 && e.lo == 0 && e.radius == 0));
  }
};
INSTANTIATE_TEST_SUITE_P(EveryTier, Classes, ::testing::ValuesIn(all_tiers),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST_P(Classes, Ordinary) { expect(finite, finite, finite); }

TEST_P(Classes, EmptyRow) {
  in = Inputs(0, 2, 2);
  expect(zero, zero, neg_inf);
}

TEST_P(Classes, NanInQReachesTheWholeRow) {
  in.q[1] = quiet_nan;
  expect(TruthKind::nan, TruthKind::nan, TruthKind::nan);
}

TEST_P(Classes, NanInAVisibleKeyReachesTheWholeRow) {
  in.k[5] = quiet_nan;
  expect(TruthKind::nan, TruthKind::nan, TruthKind::nan);
}

TEST_P(Classes, NanInVReachesItsColumn) {
  in.v[3] = quiet_nan;
  expect(finite, TruthKind::nan, finite);
  in.k[2] = -1e5;  // whatever its weight
  expect(finite, TruthKind::nan, finite);
}

TEST_P(Classes, InfinityInVIsThatInfinity) {
  in.v[0] = inf, in.v[3] = -inf;
  expect(pos_inf, neg_inf, finite);
  in.k[0] = -1e5;  // an underflowing weight is positive all the same
  expect(pos_inf, neg_inf, finite);
  in.v[2] = -inf;
  expect(TruthKind::nan, neg_inf, finite);
}

TEST_P(Classes, InfiniteScores) {
  in.k[2] = inf;  // exp(inf - inf)
  expect(TruthKind::nan, TruthKind::nan, TruthKind::nan);
  in.q[0] = -1;  // -inf: weight 0
  expect(finite, finite, finite);
  Inputs without = in;
  without.k[2] = 1e9;
  EXPECT_TRUE(overlap(run().o[0], truth(without.row(), GetParam()).o[0]));
  EXPECT_TRUE(overlap(run().lse, truth(without.row(), GetParam()).lse));
  in.v[2] = inf;  // 0 * inf
  expect(TruthKind::nan, finite, finite);
  in.v[2] = quiet_nan;
  expect(TruthKind::nan, finite, finite);
}

TEST_P(Classes, InfinityTimesZeroAndBothSigns) {
  in.q = {0, 0.5};
  in.k[2] = inf;
  expect(TruthKind::nan, TruthKind::nan, TruthKind::nan);
  in.q = {1, 0.5};
  in.k[3] = -inf;
  expect(TruthKind::nan, TruthKind::nan, TruthKind::nan);
}

TEST_P(Classes, AllScoresMinusInfinityIsAnEmptyRow) {
  in.k[0] = in.k[2] = in.k[4] = -inf;
  expect(zero, zero, neg_inf);
  in.v[3] = quiet_nan;
  expect(zero, TruthKind::nan, neg_inf);
}

TEST_P(Classes, OneKey) {
  in = Inputs(1, 1, 2);
  in.q = {1};
  in.k = {quiet_nan};
  in.v = {1, inf};
  expect(TruthKind::nan, TruthKind::nan, TruthKind::nan);
  in.k = {1e308};
  expect(finite, pos_inf, finite);
}

// Finite inputs whose score leaves double: the fast tiers must say so, 512 bits must still know.
TEST_P(Classes, OverflowIsNeverSilent) {
  in.q = {1e200, 0};
  in.k = {1e200, 0, 1e200, 0, -1e200, 0};
  in.v = {1, 1, 3, 3, 100, 100};
  const RowTruth t = run();
  EXPECT_EQ(t.o[0].kind, finite);
  if (GetParam() == Tier::fp64 || GetParam() == Tier::double_double) {
    EXPECT_EQ(t.o[0].radius, inf);
  } else {
    EXPECT_EQ(t.o[0].hi, 2);
    EXPECT_LT(t.o[0].radius, 1e-30);
  }
  EXPECT_EQ(t.lse.radius, inf);  // 1e400 has no double
}

TEST_P(Classes, OverflowingSumsAreNeverSilent) {
  in.v = {1.7e308, 1, 1.7e308, 1, 1.7e308, 1};
  const RowTruth t = run();
  EXPECT_EQ(t.o[0].kind, finite);
  EXPECT_TRUE(t.o[0].radius == inf || std::fabs(t.o[0].hi - 1.7e308) <= t.o[0].radius);
  EXPECT_TRUE(t.o[1].radius < 1e-14);
}

// Each precision by itself in its own thread: no state is shared.
TEST(Threads, TiersDoNotDisturbOneAnother) {
  ASSERT_TRUE(mpfr_buildopt_tls_p()) << "this MPFR keeps its exponent range and caches per process";
  Random r(9);
  const Inputs in = families()[0].make(r, 12, 8, 4);
  std::vector<RowTruth> want;
  for (Tier t : all_tiers) want.push_back(truth(in.row(), t));
  std::vector<int> bad(5, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 5; ++t)
    threads.emplace_back([&, t] {
      for (int repeat = 0; repeat < 20; ++repeat) {
        const RowTruth got = truth(in.row(), all_tiers[t]);
        for (int e = 0; e < 4; ++e)
          bad[t] += got.o[e].hi != want[t].o[e].hi || got.o[e].lo != want[t].o[e].lo ||
                    got.o[e].radius != want[t].o[e].radius;
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(bad, std::vector<int>(5, 0));
}

}  // namespace
}  // namespace attest::test
