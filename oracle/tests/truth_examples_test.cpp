// The worked examples of the two documents that the project started from (corpus/seeds), at their printed 8 decimals,
// on every tier. The truth itself is known far better: its radius must be below the last printed digit.
#include "oracle/tests/truth_known.h"

namespace attest::test {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

class Examples : public ::testing::TestWithParam<Tier> {};
INSTANTIATE_TEST_SUITE_P(EveryTier, Examples, ::testing::ValuesIn(all_tiers),
                         [](const auto& info) { return std::string(name(info.param)); });

void expect_printed(const TruthElement& t, double printed) {
  EXPECT_EQ(t.kind, TruthKind::finite);
  EXPECT_LE(t.radius, 1e-14);
  EXPECT_NEAR(t.hi + t.lo, printed, 0.5001e-8);
}

Inputs example(std::vector<double> q) {
  Inputs in(3, 2, 2, 1 / std::sqrt(2.0));
  in.q = std::move(q);
  in.k = {1, 0, 0, 1, 1, 1};
  in.v = {1, 2, 3, 4, 5, 6};
  return in;
}

TEST_P(Examples, Attention) {
  const RowTruth a = truth(example({1, 0}).row(), GetParam()), b = truth(example({0, 1}).row(), GetParam());
  expect_printed(a.o[0], 3), expect_printed(a.o[1], 4), expect_printed(a.lse, 1.62062114);
  expect_printed(b.o[0], 3.40667256), expect_printed(b.o[1], 4.40667256), expect_printed(b.lse, 1.62062114);
}

TEST_P(Examples, CausalAttention) {
  const double o[3] = {1, 2.3395231, 3.51046953}, lse[3] = {0.70710678, 1.10794031, 2.1004053};
  const std::vector<double> q[3] = {{1, 0}, {0, 1}, {1, 1}};
  for (int i = 0; i < 3; ++i) {
    const Inputs in = example(q[i]);
    const RowTruth t = truth(in.row(0, i + 1), GetParam());  // key j is blocked when j > i
    expect_printed(t.o[0], o[i]), expect_printed(t.o[1], o[i] + 1), expect_printed(t.lse, lse[i]);
  }
}

TEST_P(Examples, Step) {
  const double v[2][2] = {{1, 0}, {0, 1}};
  const StateTruth a = step_truth({1, 2, {1, 1}, {3, 0}, {v[0], v[1]}}, GetParam());
  EXPECT_EQ(a.m.hi, 3);
  EXPECT_EQ(a.m.radius, 0);
  expect_printed(a.l, 1.32045763), expect_printed(a.acc[0], 1.13533528), expect_printed(a.acc[1], 0.18512235);
  const StateTruth b = step_truth({-inf, 0, {0, 0}, {-inf, 0.5}, {v[0], v[1]}}, GetParam());
  EXPECT_EQ(b.m.hi, 0.5);
  EXPECT_EQ(b.l.hi, 1);
  EXPECT_EQ(b.acc[0].hi, 0);
  EXPECT_EQ(b.acc[1].hi, 1);
  for (const TruthElement& e : {b.m, b.l, b.acc[0], b.acc[1]}) EXPECT_EQ(e.radius, 0);
}

// The document prints 1.2034379904932107; the exact value is 1.20343799049321082...
TEST_P(Examples, ScanToMaximumAndSum) {
  const Known exact = 1 + exp(Known(-2)) + exp(Known(-3)) + exp(Known(-4));
  EXPECT_LE(abs(exact - Known("1.20343799049321082")), Known("0.5e-17"));
  const StateTruth t = step_truth({-inf, 0, {}, {1, 3, 2, 5}, {}}, GetParam());
  EXPECT_EQ(t.m.hi, 5);
  EXPECT_TRUE(encloses(t.l, exact));
  EXPECT_TRUE(t.acc.empty());
}

// Any chunking and any order of merges is the direct sum; a row that is partly masked, and one that is wholly masked.
TEST_P(Examples, ChunksOf37Keys) {
  Random r(0);
  for (int masked : {0, 20, 37}) {
    std::vector<double> x;
    for (int j = 0; j < 37; ++j) x.push_back(j < masked ? -inf : 10 * r.normal());
    const StateTruth direct = step_truth({-inf, 0, {}, x, {}}, GetParam());
    MergeRow parts{StateKind::ml, {}, {}, {}, 0};
    Known slack = 0;  // the parts' l are rounded to double
    int begin = 0;
    for (int size : {5, 1, 13, 8, 10}) {
      const StateTruth part = step_truth({-inf, 0, {}, {x.begin() + begin, x.begin() + begin + size}, {}}, GetParam());
      parts.m.push_back(part.m.kind == TruthKind::neg_inf ? -inf : part.m.hi);
      parts.l.push_back(part.l.hi);
      if (part.l.kind == TruthKind::finite)
        slack += (Known(std::fabs(part.l.lo)) + Known(part.l.radius)) * exp(Known(part.m.hi) - Known(direct.m.hi));
      begin += size;
    }
    const StateTruth merged = merge_truth(parts, GetParam());
    EXPECT_EQ(merged.m.kind, direct.m.kind);
    EXPECT_EQ(merged.l.kind, direct.l.kind);
    EXPECT_EQ(merged.m.hi, direct.m.hi);
    EXPECT_LE(Known(distance(merged.l, direct.l)),
              (Known(merged.l.radius) + Known(direct.l.radius) + slack) * Known(1 + 1e-9));
    EXPECT_EQ(merged.l.kind, masked == 37 ? TruthKind::zero : TruthKind::finite);
  }
}

}  // namespace
}  // namespace attest::test
