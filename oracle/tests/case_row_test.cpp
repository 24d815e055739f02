// Rows hold the visible keys, and their statistics keep small gaps between large scores.
#include <gtest/gtest.h>

#include <cmath>

#include "oracle/row.h"

namespace attest {
namespace {

Row row_of(const std::vector<double>& q, const std::vector<std::vector<double>>& k,
           const std::vector<std::vector<double>>& v, double scale) {
  Row row;
  row.tk = static_cast<std::int64_t>(k.size());
  row.d_qk = static_cast<std::int64_t>(q.size());
  row.d_v = v.empty() ? 1 : static_cast<std::int64_t>(v[0].size());
  row.scale = scale;
  row.q = q.data();
  for (std::size_t j = 0; j < k.size(); ++j) {
    row.key.push_back(static_cast<std::int64_t>(j));
    row.k.push_back(k[j].data());
    row.v.push_back(v[j].data());
  }
  return row;
}

TEST(Row, TakesTheVisibleKeysOfTheRightHead) {
  Case c;
  c.shape = Shape{2, 4, 2, 3, 5, 2, 3, 2};
  c.mask.causal = Causal::top_left;
  c.mask.kv_len = {5, 2};
  const Problem p(c, {DType::fp32, DType::fp32});
  const Row row = make_row(p, 1, 3, 2);
  EXPECT_EQ((std::vector<std::int64_t>{0, 1}), row.key);
  EXPECT_EQ(5, row.tk);
  EXPECT_EQ(p.input("q").data() + ((1 * 4 + 3) * 3 + 2) * 2, row.q);
  EXPECT_EQ(p.input("k").data() + ((1 * 2 + 1) * 5 + 1) * 2, row.k[1]);
  EXPECT_EQ(p.input("v").data() + ((1 * 2 + 1) * 5 + 1) * 3, row.v[1]);
  EXPECT_EQ(3, make_row(p, 0, 0, 2).size());
}

TEST(Row, StatsOfTheDocumentsExample) {
  // x = 1, 3, 2, 5: m = 5, l = 1.2034379904932108
  const std::vector<std::vector<double>> k = {{1}, {3}, {2}, {5}}, v = {{1}, {0}, {0}, {0}};
  const std::vector<double> q = {1};
  const RowStats s = row_stats(row_of(q, k, v, 1));
  EXPECT_EQ(5, s.m);
  EXPECT_NEAR(1.20343799049321082, s.W, 4e-16);
  EXPECT_NEAR(5 + std::log(1.20343799049321082), s.lse, 2e-15);
  EXPECT_NEAR(std::exp(-4.0) / 1.20343799049321082, s.o[0], 1e-17);
  EXPECT_EQ(4, s.gap[0]);
  EXPECT_EQ(1, s.A[0]);
  EXPECT_TRUE(s.finite);
}

TEST(Row, GapsAreTakenBeforeRounding) {
  // q.k = 2^60 + 3 and 2^60 + 1 as exact sums; as doubles both are 2^60.
  const std::vector<std::vector<double>> k = {{0x1p60, 3}, {0x1p60, 1}}, v = {{1}, {0}};
  const std::vector<double> q = {1, 1};
  const RowStats s = row_stats(row_of(q, k, v, 1));
  EXPECT_EQ(0, s.gap[0]);
  EXPECT_EQ(2, s.gap[1]);
  EXPECT_EQ(0x1p60, s.x[0]);
  EXPECT_EQ(0x1p60, s.A[1]);
}

TEST(Row, GapsBelowTheLastDigitOfAPairAreExact) {
  // Three parts to a score: a pair of doubles keeps two. Found by fuzzing, as an O beyond its bound.
  const std::vector<std::vector<double>> k = {{0x1p160, 0x1p80, 3}, {0x1p160, 0x1p80, 1}, {0x1p160, 0x1p80, 3}};
  const std::vector<std::vector<double>> v = {{1}, {0}, {5}};
  const std::vector<double> q = {1, 1, 1};
  const RowStats s = row_stats(row_of(q, k, v, 1));
  EXPECT_EQ((std::vector<double>{0, 2, 0}), s.gap);
  EXPECT_NEAR(6 / (2 + std::exp(-2.0)), s.o[0], 1e-15);
  EXPECT_LT(s.gap_error, 1e-20);
  // Scores of both signs near the end of the range, and a gap that no double holds.
  const std::vector<std::vector<double>> far = {{0x1p1000, 1, 0}, {-0x1p1000, 1, 0}, {0x1p1000, 1, -0x1p-20}};
  const RowStats t = row_stats(row_of(q, far, v, 1));
  EXPECT_EQ((std::vector<double>{0, 0x1p1001, 0x1p-20}), t.gap);
}

TEST(Row, EmptyRowsHaveNoWeight) {
  const std::vector<double> q = {1};
  Row row = row_of(q, {}, {}, 1);
  row.d_v = 2;
  const RowStats s = row_stats(row);
  EXPECT_EQ(-INFINITY, s.m);
  EXPECT_EQ(-INFINITY, s.lse);
  EXPECT_EQ(0, s.W);
  EXPECT_EQ((std::vector<double>{0, 0}), s.o);
  EXPECT_TRUE(s.finite);
}

TEST(Row, NonFiniteRowsSaySoAndHoldNoNaN) {
  const std::vector<double> bad = {INFINITY, -INFINITY, NAN, 1e308};
  for (double x : bad)
    for (int where = 0; where < 3; ++where) {
      std::vector<double> q = {2, 1};
      std::vector<std::vector<double>> k = {{1, 1}, {-1, 2}}, v = {{1}, {2}};
      (where == 0 ? q : where == 1 ? k[1] : v[1])[0] = x;
      if (where == 0 && x == 1e308) q[1] = 1e308;
      const RowStats s = row_stats(row_of(q, k, v, 4));
      EXPECT_EQ(where == 2 && x == 1e308, s.finite) << where << " " << x;
      for (const auto* xs : {&s.x, &s.A, &s.gap, &s.w, &s.o})
        for (double y : *xs) EXPECT_FALSE(std::isnan(y)) << where << " " << x;
      EXPECT_FALSE(std::isnan(s.m) || std::isnan(s.W) || std::isnan(s.lse));
    }
}

TEST(Row, FarScoresSaturate) {
  const std::vector<std::vector<double>> k = {{1e308}, {-1e308}}, v = {{1}, {2}};
  const std::vector<double> q = {1};
  const RowStats s = row_stats(row_of(q, k, v, 1));
  EXPECT_TRUE(s.finite);
  EXPECT_TRUE(std::isfinite(s.gap[1]));
  EXPECT_EQ(0, s.w[1]);
  EXPECT_EQ(1, s.o[0]);
}

}  // namespace
}  // namespace attest
