// Claims with an answer on paper, for every tier: equal scores, two keys (logistic), geometric series, one-hot V,
// a common shift, and rows that a chunk or a zero weight cannot change.
#include "oracle/tests/truth_known.h"

namespace attest::test {
namespace {

class ClosedForms : public ::testing::TestWithParam<Tier> {};
INSTANTIATE_TEST_SUITE_P(EveryTier, ClosedForms, ::testing::ValuesIn(all_tiers),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST_P(ClosedForms, EqualScoresGiveTheMeanOfVAndLogN) {
  for (double x : {0.0, 0.1, -20.0, 1000.0, -1000.0, 1e5, -6e4})
    for (std::int64_t n : {1, 2, 3, 7, 64, 200}) {
      Inputs in = from_scores(std::vector<double>(n, x), 3);
      Known sums[3] = {0, 0, 0};
      Random r(n);
      for (std::int64_t i = 0; i < n * 3; ++i) {
        in.v[i] = r.normal() * (i % 3 == 2 ? 1e9 : 1);
        sums[i % 3] += Known(in.v[i]);
      }
      const RowTruth t = truth(in.row(), GetParam());
      for (int e = 0; e < 3; ++e) EXPECT_TRUE(encloses(t.o[e], sums[e] / n)) << "n " << n << ", x " << x;
      EXPECT_TRUE(encloses(t.lse, Known(x) + log(Known(n)))) << "n " << n << ", x " << x;
    }
}

TEST_P(ClosedForms, OneKeyReturnsItsValueExactly) {
  Inputs in(1, 5, 2, 0.3);
  for (int i = 0; i < 5; ++i) in.q[i] = in.k[i] = 0.1 * (i + 1);
  in.v = {0.1, 0x1p-1074};
  const RowTruth t = truth(in.row(), GetParam());
  EXPECT_EQ(t.o[0].hi, 0.1);
  EXPECT_EQ(t.o[1].hi, 0x1p-1074);
  EXPECT_EQ(t.o[0].radius, 0);
  EXPECT_EQ(t.o[1].radius, 0);
}

TEST_P(ClosedForms, TwoKeysAreTheLogisticFunction) {
  for (double gap : {0.0, 0x1p-1074, 1e-300, 1e-17, 1e-3, 1.0, 30.0, 36.8, 700.0, 745.0, 746.0, 800.0, 1e5, 1e300})
    for (double base : {0.0, 1000.0}) {
      if (base + gap - base != gap) continue;
      Inputs in = from_scores({base, base + gap}, 2);
      in.v = {1, 3, 0, -2};
      const Known p = 1 / (1 + exp(Known(gap)));  // of key 0
      const RowTruth t = truth(in.row(), GetParam());
      EXPECT_TRUE(encloses(t.o[0], p)) << gap;
      EXPECT_TRUE(encloses(t.o[1], 3 * p - 2 * (1 - p))) << gap;
      EXPECT_TRUE(encloses(t.lse, Known(base) + Known(gap) + log1p(exp(-Known(gap))))) << gap;
    }
}

TEST_P(ClosedForms, GeometricSeriesHaveAnAnalyticSum) {
  for (double step : {0.6931471805599453, 0.75, -2.0, 1e-3, 100.0})
    for (std::int64_t n : {2, 5, 33, 100}) {
      Inputs in(n, 1, 1, std::fabs(step));
      in.q[0] = step < 0 ? -1 : 1;
      for (std::int64_t j = 0; j < n; ++j) in.k[j] = in.v[j] = static_cast<double>(j);
      const Known r = exp(Known(step)), rn = exp(Known(step) * n);
      const RowTruth t = truth(in.row(), GetParam());
      EXPECT_TRUE(encloses(t.lse, log((rn - 1) / (r - 1)))) << step << ", n " << n;
      EXPECT_TRUE(encloses(t.o[0], n * rn / (rn - 1) - r / (r - 1))) << step << ", n " << n;
    }
}

TEST_P(ClosedForms, OneHotVGivesTheSoftmaxItself) {
  Random r(5);
  constexpr std::int64_t n = 9, d = 4;
  Inputs in(n, d, n, 0.1);  // 0.1 is not 1/10: the scale is taken as passed
  for (double& x : in.q) x = 3 * r.normal();
  for (double& x : in.k) x = 3 * r.normal();
  for (std::int64_t j = 0; j < n; ++j) in.v[j * n + j] = 1;
  Known total = 0;
  std::vector<Known> w;
  for (std::int64_t j = 0; j < n; ++j) {
    Known x = 0;
    for (std::int64_t i = 0; i < d; ++i) x += Known(in.q[i]) * Known(in.k[j * d + i]);
    w.push_back(exp(Known(in.scale) * x));
    total += w.back();
  }
  const RowTruth t = truth(in.row(), GetParam());
  for (std::int64_t j = 0; j < n; ++j) EXPECT_TRUE(encloses(t.o[j], w[j] / total)) << j;
  EXPECT_TRUE(encloses(t.lse, log(total)));
}

TEST_P(ClosedForms, ACommonShiftMovesLseAlone) {
  Random r(6);
  std::vector<double> scores, shifted;
  for (int j = 0; j < 20; ++j) {
    scores.push_back(static_cast<double>(r.below(4096)) / 512 - 4);  // so that + 60000 is exact
    shifted.push_back(scores.back() - 60000);
  }
  Inputs a = from_scores(scores, 1), b = from_scores(shifted, 1);
  for (int j = 0; j < 20; ++j) a.v[j] = b.v[j] = r.normal();
  const RowTruth ta = truth(a.row(), GetParam()), tb = truth(b.row(), GetParam());
  EXPECT_TRUE(overlap(ta.o[0], tb.o[0]));
  EXPECT_TRUE(encloses({TruthKind::finite, ta.lse.hi, ta.lse.lo, ta.lse.radius + tb.lse.radius},
                       Known(tb.lse.hi) + Known(tb.lse.lo) + 60000));
}

// Below the smallest subnormal, the answer is 0 with a radius that still holds it.
TEST_P(ClosedForms, ResultsBelowDoubleAreRight) {
  Inputs in = from_scores({0, -730, -800}, 3);
  in.v = {0, 0, 0, 1, 0x1p-1074, 0, 0, 0, 1};
  const RowTruth t = truth(in.row(), GetParam());
  const Known total = 1 + exp(Known(-730)) + exp(Known(-800));
  EXPECT_TRUE(encloses(t.o[0], exp(Known(-730)) / total));
  EXPECT_TRUE(encloses(t.o[1], exp(Known(-730)) * Known(0x1p-1074) / total));
  EXPECT_TRUE(encloses(t.o[2], exp(Known(-800)) / total));
  EXPECT_TRUE(encloses(t.lse, log(total)));
  EXPECT_LE(t.o[2].radius, 0x1p-1060);
}

}  // namespace
}  // namespace attest::test
