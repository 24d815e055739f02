// Step and merge, on every tier: guards of empty states, identity, exact maxima, folds and trees against the direct
// definition, and agreement of the tiers over extreme scores.
#include <cstdio>
#include <limits>

#include "oracle/tests/truth_known.h"

namespace attest::test {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double quiet_nan = std::numeric_limits<double>::quiet_NaN();

class State : public ::testing::TestWithParam<Tier> {};
INSTANTIATE_TEST_SUITE_P(EveryTier, State, ::testing::ValuesIn(all_tiers),
                         [](const auto& info) { return std::string(name(info.param)); });

void expect_exactly(const TruthElement& t, double value) {
  EXPECT_EQ(t.kind, TruthKind::finite);
  EXPECT_EQ(t.hi, value);
  EXPECT_EQ(t.lo, 0);
  EXPECT_EQ(t.radius, 0);
}

TEST_P(State, AnEmptyStepStaysEmpty) {
  const double v[2] = {quiet_nan, inf};  // behind a blocked key: not looked at
  const StateTruth t = step_truth({-inf, 0, {0, 0}, {-inf, -inf}, {v, v}}, GetParam());
  EXPECT_EQ(t.m.kind, TruthKind::neg_inf);
  EXPECT_EQ(t.l.kind, TruthKind::zero);
  ASSERT_EQ(t.acc.size(), 2u);
  EXPECT_EQ(t.acc[0].kind, TruthKind::zero);
  EXPECT_EQ(t.acc[1].kind, TruthKind::zero);
  EXPECT_EQ(step_truth({-inf, 0, {}, {}, {}}, GetParam()).m.kind, TruthKind::neg_inf);
}

TEST_P(State, ABlockedBlockLeavesTheStateAsItWas) {
  const double v[2] = {quiet_nan, inf};
  const StateTruth t = step_truth({-200.5, 3.1, {0.1, -7}, {-inf, -inf}, {v, v}}, GetParam());
  expect_exactly(t.m, -200.5);
  expect_exactly(t.l, 3.1);
  expect_exactly(t.acc[0], 0.1);
  expect_exactly(t.acc[1], -7);
}

TEST_P(State, NanAndInfinityOfAStep) {
  const double v[2] = {1, quiet_nan}, w[2] = {2, 2};
  const auto kinds = [&](const StepRow& row) {
    const StateTruth t = step_truth(row, GetParam());
    return std::vector<TruthKind>{t.m.kind, t.l.kind, t.acc[0].kind, t.acc[1].kind};
  };
  using K = std::vector<TruthKind>;
  using enum TruthKind;
  EXPECT_EQ(kinds({1, 1, {1, 1}, {0, 0}, {v, w}}), (K{finite, finite, finite, TruthKind::nan}));
  EXPECT_EQ(kinds({1, 1, {1, 1}, {quiet_nan, 0}, {w, w}}),
            (K{TruthKind::nan, TruthKind::nan, TruthKind::nan, TruthKind::nan}));
  EXPECT_EQ(kinds({quiet_nan, 1, {1, 1}, {0, 0}, {w, w}}),
            (K{TruthKind::nan, TruthKind::nan, TruthKind::nan, TruthKind::nan}));
  EXPECT_EQ(kinds({1, 1, {1, 1}, {inf, 0}, {w, w}}), (K{pos_inf, TruthKind::nan, TruthKind::nan, TruthKind::nan}));
  EXPECT_EQ(kinds({1, quiet_nan, {1, inf}, {0, 0}, {w, w}}), (K{finite, TruthKind::nan, finite, pos_inf}));
  EXPECT_EQ(kinds({-inf, 0, {quiet_nan, 0}, {0, 0}, {w, w}}), (K{finite, finite, TruthKind::nan, finite}));
}

TEST_P(State, EmptyPartsAreTheIdentityOfMerge) {
  const double zero[2] = {0, 0}, acc[2] = {0.3, -5};
  for (int place = 0; place < 3; ++place) {
    MergeRow row{StateKind::mla, {-inf, -inf, -inf}, {0, 0, 0}, {zero, zero, zero}, 2};
    row.m[place] = -100.7, row.l[place] = 2.9, row.acc[place] = acc;
    const StateTruth t = merge_truth(row, GetParam());
    expect_exactly(t.m, -100.7);
    expect_exactly(t.l, 2.9);
    expect_exactly(t.acc[0], 0.3);
    row.kind = StateKind::olse;
    const StateTruth o = merge_truth(row, GetParam());
    expect_exactly(o.m, -100.7);
    expect_exactly(o.acc[1], -5);
  }
}

TEST_P(State, AllEmptyMergesToEmpty) {
  const double zero[1] = {0};
  for (StateKind kind : {StateKind::ml, StateKind::mla, StateKind::olse})
    for (int parts : {0, 1, 3}) {
      const StateTruth t = merge_truth({kind, std::vector<double>(parts, -inf), std::vector<double>(parts, 0.0),
                                        std::vector<const double*>(parts, zero), 1},
                                       GetParam());
      EXPECT_EQ(t.m.kind, TruthKind::neg_inf);
      EXPECT_EQ(t.l.kind, kind == StateKind::olse ? TruthKind::finite : TruthKind::zero);
      ASSERT_EQ(t.acc.size(), kind == StateKind::ml ? 0u : 1u);
      for (const TruthElement& e : t.acc) EXPECT_EQ(e.kind, TruthKind::zero);
    }
}

TEST_P(State, FarPartsDoNotDisturb) {
  const double x[1] = {3}, y[1] = {-8};
  const StateTruth t = merge_truth({StateKind::olse, {-100, 100}, {}, {x, y}, 1}, GetParam());
  const Known w = exp(Known(-200));
  EXPECT_TRUE(encloses(t.m, 100 + log1p(w)));
  EXPECT_TRUE(encloses(t.acc[0], (3 * w - 8) / (1 + w)));
}

// A step from empty over all keys, a merge of one-key parts, and the row itself are the same sums.
TEST_P(State, StepMergeAndRowAreOne) {
  Random r(21);
  for (double spread : {1.0, 30.0, 1000.0, 6e4, 1e5}) {
    constexpr std::int64_t n = 19, d_v = 3;
    std::vector<double> s;
    for (int j = 0; j < n; ++j) s.push_back(spread * r.between(-1, 1));
    s[3] = s[7];
    Inputs in = from_scores(s, d_v);
    for (double& x : in.v) x = r.normal();
    StepRow step{-inf, 0, std::vector<double>(d_v, 0.0), s, {}};
    MergeRow merge{StateKind::mla, s, std::vector<double>(n, 1.0), {}, d_v};
    for (int j = 0; j < n; ++j) step.v.push_back(&in.v[j * d_v]);
    merge.acc = step.v;
    const StateTruth a = step_truth(step, GetParam()), b = merge_truth(merge, GetParam());
    const RowTruth t = truth(in.row(), GetParam());
    EXPECT_EQ(a.m.hi, b.m.hi);
    EXPECT_TRUE(overlap(a.l, b.l));
    Known l = 0, acc[d_v] = {0, 0, 0};
    for (int j = 0; j < n; ++j) {
      const Known w = exp(Known(s[j]) - Known(a.m.hi));
      l += w;
      for (int e = 0; e < d_v; ++e) acc[e] += w * Known(in.v[j * d_v + e]);
    }
    EXPECT_TRUE(encloses(a.l, l)) << spread;
    for (int e = 0; e < d_v; ++e) {
      EXPECT_TRUE(encloses(a.acc[e], acc[e])) << spread;
      EXPECT_TRUE(encloses(b.acc[e], acc[e])) << spread;
      EXPECT_TRUE(encloses(t.o[e], acc[e] / l)) << spread;
    }
    EXPECT_TRUE(encloses(t.lse, Known(a.m.hi) + log(l))) << spread;
    merge.kind = StateKind::olse;  // one-key parts: O = v_j, LSE = s_j
    const StateTruth o = merge_truth(merge, GetParam());
    EXPECT_TRUE(overlap(o.m, t.lse));
    for (int e = 0; e < d_v; ++e) EXPECT_TRUE(overlap(o.acc[e], t.o[e])) << spread;
  }
}

// Steps over blocks, each from the rounded state before it, against the sum of what the rounded states say.
TEST_P(State, StepsFoldToTheDirectSum) {
  Random r(22);
  std::vector<double> s, v;
  for (int j = 0; j < 40; ++j) s.push_back(j / 8 % 2 ? 1000 + r.normal() : -1000 + r.normal()), v.push_back(r.normal());
  double m = -inf, l = 0, acc = 0;
  Known l_error = 0, acc_error = 0;  // carried along: rounding of each state, scaled as the state is
  for (int b = 0; b < 40; b += 8) {
    StepRow row{m, l, {acc}, {s.begin() + b, s.begin() + b + 8}, {}};
    for (int j = b; j < b + 8; ++j) row.v.push_back(&v[j]);
    const StateTruth t = step_truth(row, GetParam());
    const Known shrink = m == -inf ? Known(0) : exp(Known(m) - Known(t.m.hi));
    l_error = l_error * shrink + Known(t.l.radius) + Known(std::fabs(t.l.lo));
    acc_error = acc_error * shrink + Known(t.acc[0].radius) + Known(std::fabs(t.acc[0].lo));
    m = t.m.hi, l = t.l.hi, acc = t.acc[0].hi;
  }
  Known want_l = 0, want_acc = 0;
  for (int j = 0; j < 40; ++j) {
    const Known w = exp(Known(s[j]) - Known(m));
    want_l += w, want_acc += w * Known(v[j]);
  }
  EXPECT_LE(abs(want_l - Known(l)), l_error);
  EXPECT_LE(abs(want_acc - Known(acc)), acc_error);
  EXPECT_LE(l_error, want_l * Known(1e-13));
}

TEST(StateAgreement, FastTiersLieWithinTheirRadiiOfExact) {
  constexpr std::uint64_t seed = 23;
  Random r(seed);
  double worst[2] = {0, 0};
  for (int repeat = 0; repeat < 400; ++repeat) {
    const std::int64_t parts = 1 + r.below(12), d_v = 1 + r.below(8);
    const double spread = std::pow(10.0, r.between(-3, 5.3)), base = repeat % 3 ? 0 : 6e4 * r.between(-1, 1);
    std::vector<double> values;
    for (int i = 0; i < parts * d_v; ++i) values.push_back(r.normal() * std::pow(10.0, r.between(-6, 6)));
    MergeRow row{repeat % 2 ? StateKind::mla : StateKind::olse, {}, {}, {}, d_v};
    for (int b = 0; b < parts; ++b) {
      row.m.push_back(r.below(8) == 0 ? -inf : base + spread * r.between(-1, 1));
      row.l.push_back(r.between(0.5, 100));
      row.acc.push_back(&values[b * d_v]);
    }
    const StateTruth exact = merge_truth(row, Tier::exact512);
    for (int t = 0; t < 2; ++t) {
      const StateTruth fast = merge_truth(row, fast_tiers[t]);
      std::vector<std::pair<TruthElement, TruthElement>> pairs = {{fast.m, exact.m}, {fast.l, exact.l}};
      for (int e = 0; e < d_v; ++e) pairs.emplace_back(fast.acc[e], exact.acc[e]);
      for (const auto& [got, want] : pairs) {
        ASSERT_TRUE(overlap(got, want)) << "seed " << seed << ", repeat " << repeat << ", " << name(fast_tiers[t])
                                        << ": " << distance(got, want) << " > " << got.radius;
        ASSERT_TRUE(std::isfinite(got.radius));
        if (got.radius > 0) worst[t] = std::max(worst[t], distance(got, want) / got.radius);
      }
    }
  }
  std::printf("  merge: max error/radius fp64 %.3f, double_double %.3f\n", worst[0], worst[1]);
  EXPECT_GT(worst[0], 0.1);  // a radius ten times too wide would be seen here
  EXPECT_GT(worst[1], 0.01);
}

}  // namespace
}  // namespace attest::test
