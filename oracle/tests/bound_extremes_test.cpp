// Bounds where formats end: huge scores, infinities, negative sums. Each was once wrong; the values are kept.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "oracle/bound.h"
#include "oracle/verdict.h"

namespace attest {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

attn_contract contract(std::int32_t algorithm, std::int32_t in = ATTN_FP32, std::int32_t p = ATTN_FP32) {
  attn_contract c{};
  c.struct_size = sizeof c;
  c.algorithm = algorithm;
  c.in_dtype = in;
  c.acc_dtype = ATTN_FP32;
  c.p_dtype = p;
  c.qk_accumulation = c.pv_accumulation = ATTN_ACC_FMA;
  c.sum_order = ATTN_SUM_SEQUENTIAL;
  c.exp_form = ATTN_EXP_DIFFERENCE;
  c.exp_error = c.rescale_exp_error = 1.5;
  c.log_relative = c.division_error = 1;
  c.rescale = ATTN_RESCALE_ALWAYS;
  c.split_merge = algorithm == ATTN_ALG_MERGE ? ATTN_MERGE_RENORMALISED : ATTN_MERGE_NONE;
  return c;
}

// One row over n keys of one coordinate value each, all d_qk coordinates equal; v as given, one column.
struct OneRow {
  OneRow(std::int64_t d, double scale, double query, const std::vector<double>& keys, std::vector<double> values)
      : q(static_cast<std::size_t>(d), query), v(std::move(values)) {
    for (const double x : keys) k.emplace_back(static_cast<std::size_t>(d), x);
    row.tk = static_cast<std::int64_t>(keys.size());
    row.d_qk = d, row.d_v = 1, row.scale = scale, row.q = q.data();
    for (std::size_t j = 0; j < k.size(); ++j) {
      row.key.push_back(static_cast<std::int64_t>(j));
      row.k.push_back(k[j].data());
      row.v.push_back(&v[j]);
    }
    stats = row_stats(row);
  }
  RowBound bound(const attn_contract& c, DType out = DType::fp32) const {
    KeyPlan plan;
    plan.tk = row.tk;
    plan.block_k = row.tk;
    return forward_bound(c, plan, row, stats, out, false);
  }
  std::vector<double> q, v;
  std::vector<std::vector<double>> k;
  Row row;
  RowStats stats;
};

TEST(BoundExtremes, BoxTendsToTheHullAndNoFurther) {
  for (const std::int32_t p : {ATTN_FP16, ATTN_BF16, ATTN_FP32}) {
    for (const double size : {10.0, 100.0, 1000.0, 10000.0, 60000.0}) {
      const OneRow one(64, 0.125, size, {size, size, size}, {0, 1, 2});
      const ElementBound b = one.bound(contract(ATTN_ALG_FA2, p == ATTN_FP32 ? ATTN_FP32 : p, p)).o[0];
      EXPECT_LT(b.deterministic, 1.05) << "P dtype " << p << ", |q| = |k| = " << size;
      EXPECT_EQ(judge({TruthKind::finite, 1, 0, 1e-9}, b, nan).verdict, Verdict::fail);
      EXPECT_EQ(judge({TruthKind::finite, 1, 0, 1e-9}, b, 60000).verdict, Verdict::fail);
    }
  }
}

TEST(BoundExtremes, LseKeepsABoundAtHugeScores) {
  for (const double size : {1e3, 1e4, 1e5, 1e6}) {
    const OneRow one(64, 0.125, size, {size, -size, 0.5 * size, size}, {1, 2, 3, 4});
    const double b = one.bound(contract(ATTN_ALG_FA2)).lse.deterministic;
    const double delta = 0.125 * 64 * 0x1p-24 * 64 * size * size;
    EXPECT_TRUE(b > 0 && b < 4 * delta + 10) << "|q| = |k| = " << size << ": " << b;
  }
}

TEST(BoundExtremes, FiniteValuesThatOverflowBesideAnInfinityAdmitAnything) {
  const OneRow one(1, 1, 1, {1, 1, 1}, {-3e38, -3e38, inf});
  EXPECT_EQ(one.bound(contract(ATTN_ALG_FA2)).o[0].deterministic, inf);
  // A weight of e^-11.5 may round to zero in fp16 once the score's own error is counted: 0 * inf is NaN.
  const OneRow far(1, 1, 1, {0, -16.5}, {1, inf});
  EXPECT_EQ(far.bound(contract(ATTN_ALG_FA2, ATTN_FP16, ATTN_FP16)).o[0].deterministic, inf);
  const OneRow near(1, 1, 1, {0, -1}, {1, inf});
  EXPECT_EQ(near.bound(contract(ATTN_ALG_FA2, ATTN_FP16, ATTN_FP16)).o[0].deterministic, 0);
}

TEST(BoundExtremes, SplitsWhoseLseOverflowsAdmitAnything) {
  const OneRow one(1, 0x1p127, 1, {0, -3}, {1, 2});
  attn_contract c = contract(ATTN_ALG_SPLIT);
  c.split_merge = ATTN_MERGE_RENORMALISED;
  EXPECT_EQ(one.bound(c).o[0].deterministic, inf);
  EXPECT_LT(one.bound(contract(ATTN_ALG_FA2)).o[0].deterministic, 2);  // the hull: the scores are ill-conditioned
}

TEST(BoundExtremes, MergeOverflowsWhicheverSideIsLarger) {
  const double largest = std::numeric_limits<float>::max();
  const std::vector<double> third{largest / 3}, whole{largest};
  const StateBound exact{0, 0, {0}, false};
  const MergeSide small{StateKind::olse, -1, 0, third, exact}, large{StateKind::olse, 0, 0, whole, exact};
  const attn_contract c = contract(ATTN_ALG_MERGE);
  EXPECT_EQ(merge_bound(c, small, large).acc[0], inf);
  EXPECT_EQ(merge_bound(c, large, small).acc[0], inf);
}

TEST(BoundExtremes, MergeOfLargeLseKeepsItsWeights) {
  const std::vector<double> o{1.0};
  for (const double base : {1e6, 1e9, 0x1p50, 0x1p52}) {
    const StateBound off{0, 0, {1e-3}, false};
    const MergeSide a{StateKind::olse, base, 0, o, off}, b{StateKind::olse, base - 1.5, 0, o, off};
    EXPECT_GE(merge_bound(contract(ATTN_ALG_MERGE), a, b).acc[0], 1e-3) << "|LSE| = " << base;
  }
}

TEST(BoundExtremes, StepsOfNegativeSumsAndInfiniteAccumulators) {
  const std::vector<double> acc{-inf}, none;
  const double one = 1, score = 0;
  const double* v = &one;
  StepBound negative(contract(ATTN_ALG_STEP), 0, -100, none);
  negative.fold({&score, 1}, {});
  EXPECT_GT(negative.state().l, 0);
  StepBound infinite(contract(ATTN_ALG_STEP), -1.8e19, 1, acc);
  infinite.fold({&score, 1}, {&v, 1});
  EXPECT_EQ(infinite.state().acc[0], inf);
  const std::vector<double> nan_acc{nan};
  StepBound by_class(contract(ATTN_ALG_STEP), 0, 1, nan_acc);
  by_class.fold({&score, 1}, {&v, 1});
  EXPECT_EQ(by_class.state().acc[0], 0);
}

TEST(BoundExtremes, NarrowedSubnormalScaleIsChargedForWhatItLoses) {
  attn_contract c = contract(ATTN_ALG_FA2);
  c.scale_narrowed = 1;
  const OneRow one(1, 0x1.7ffp-149, 1, {1e38, 3e38}, {1, 2});
  EXPECT_GT(one.bound(c).lse.deterministic, 0.25 * 0x1.7ffp-149 * 3e38);
}

}  // namespace
}  // namespace attest
