// Formats, key plans, and the rows where a bound is no small number: empty rows, NaN, infinities, overflow.
#include <gtest/gtest.h>

#include "oracle/tests/bound_families.h"
#include "oracle/tests/bound_setups.h"

namespace attest::bound_test {
namespace {

attn_contract fp32_fa2() { return contract_of(ATTN_ALG_FA2, ATTN_FP32, ATTN_FP32, ATTN_FP32); }

RowBound bound_of(const attn_contract& c, const RowValues& x, DType out, std::int64_t block_k = 4) {
  KeyPlan plan;
  plan.tk = x.n;
  plan.block_k = block_k;
  plan.keys_per_split = x.n;
  const Row row = x.row();
  return forward_bound(c, plan, row, row_stats(row), out, true);
}

// n equal keys with score `x` (unscaled, one product) and value v.
RowValues equal_keys(std::int64_t n, double q, double k, double v, double scale = 1) {
  RowValues x;
  x.n = n;
  x.d_qk = 1;
  x.d_v = 1;
  x.scale = scale;
  x.q = {q};
  x.k.assign(n, k);
  x.v.assign(n, v);
  return x;
}

TEST(BoundFormats, FactsAreThoseOfTheFormats) {
  EXPECT_EQ(facts(DType::fp64).u, 0x1p-53);
  EXPECT_EQ(facts(DType::fp32).u, 0x1p-24);
  EXPECT_EQ(facts(DType::fp16).u, 0x1p-11);
  EXPECT_EQ(facts(DType::bf16).u, 0x1p-8);
  EXPECT_EQ(facts(DType::fp16).max, 65504);
  EXPECT_EQ(facts(DType::fp32).max, static_cast<double>(std::numeric_limits<float>::max()));
  EXPECT_EQ(facts(DType::bf16).max, 0x1.fep127);
  EXPECT_EQ(facts(DType::fp64).max, std::numeric_limits<double>::max());
  EXPECT_EQ(facts(DType::fp32).half_subnormal, 0x1p-150);
  EXPECT_EQ(facts(DType::fp16).half_subnormal, 0x1p-25);
  EXPECT_EQ(facts(DType::bf16).half_subnormal, 0x1p-134);
  EXPECT_THROW(facts(DType::any), std::invalid_argument);
  EXPECT_THROW(dtype_of(ATTN_U8), std::invalid_argument);
  for (const DType t : {DType::fp64, DType::fp32, DType::fp16, DType::bf16}) EXPECT_EQ(dtype_of(attn_dtype_of(t)), t);
}

TEST(BoundPlan, WhatNobodySaysIsChargedAtItsWorst) {
  attn_contract c = fp32_fa2();
  EXPECT_EQ(key_plan(c, 100, {}).block_k, 1) << "unknown: every key may be a block";
  c.default_block_k = 64;
  EXPECT_EQ(key_plan(c, 100, {}).block_k, 64);
  EXPECT_EQ(key_plan(c, 10, {}).block_k, 10);
  attn_tiling asked{};
  asked.block_k = 16;
  asked.splits = 3;
  EXPECT_EQ(key_plan(c, 100, asked).block_k, 16);
  EXPECT_EQ(key_plan(c, 100, asked).splits, 1) << "only a split kernel splits";
  c.algorithm = ATTN_ALG_SPLIT;
  EXPECT_EQ(key_plan(c, 100, asked).splits, 3);
  EXPECT_EQ(key_plan(c, 100, asked).keys_per_split, 0);
  EXPECT_EQ(key_plan(c, 100, {}).splits, 100);
  c.max_splits = 8;
  EXPECT_EQ(key_plan(c, 100, {}).splits, 8);
  c.algorithm = ATTN_ALG_STANDARD;
  EXPECT_EQ(key_plan(c, 100, asked).block_k, 100);
  EXPECT_EQ(key_plan(c, 0, asked).block_k, 1);
}

TEST(BoundRows, MoreBlocksAndLessKnowledgeOnlyLoosen) {
  Random r(7);
  const RowValues x = make_row(Kind::ascending, 64, 16, 8, DType::fp32, 8, r);
  attn_contract c = fp32_fa2();
  double before = 0;
  for (const std::int64_t block_k : {64, 16, 4, 1}) {
    const double b = bound_of(c, x, DType::fp32, block_k).o[0].deterministic;
    EXPECT_GE(b, before);
    before = b;
  }
  c.sum_order = ATTN_SUM_ANY;
  EXPECT_GE(bound_of(c, x, DType::fp32, 1).o[0].deterministic, before);
  EXPECT_FALSE(bound_of(c, x, DType::fp32, 1).expected_valid);
}

TEST(BoundRows, EmptyRowsAreExact) {
  const RowBound b = bound_of(fp32_fa2(), equal_keys(0, 1, 1, 1), DType::fp32);
  EXPECT_EQ(b.o[0].deterministic, 0);
  EXPECT_EQ(b.lse.deterministic, 0);
}

TEST(BoundRows, NaNIsComparedByClassAndStaysInItsColumn) {
  RowValues x = equal_keys(3, 1, 1, 2);
  x.d_v = 2;
  x.v = {1, 2, 3, std::nan(""), 5, 6};
  const RowBound b = bound_of(fp32_fa2(), x, DType::fp32);
  EXPECT_EQ(b.o[1].deterministic, 0);
  EXPECT_GT(b.o[0].deterministic, 0);
  EXPECT_LT(b.o[0].deterministic, 1e-5);
  EXPECT_LT(b.lse.deterministic, 1e-5);
  x.k[1] = std::nan("");
  const RowBound all = bound_of(fp32_fa2(), x, DType::fp32);
  EXPECT_EQ(all.o[0].deterministic, 0);
  EXPECT_EQ(all.lse.deterministic, 0);
}

TEST(BoundRows, InfiniteValuesAdmitAnythingOnlyWhereTheirWeightMayVanish) {
  RowValues x = equal_keys(3, 1, 1, 2);
  x.v[1] = HUGE_VAL;
  EXPECT_EQ(bound_of(fp32_fa2(), x, DType::fp32).o[0].deterministic, 0);
  x.k[1] = -200;
  EXPECT_EQ(bound_of(fp32_fa2(), x, DType::fp32).o[0].deterministic, HUGE_VAL);
}

TEST(BoundRows, OverflowIsDeclaredOnlyWhereItCanHappen) {
  const attn_contract c = fp32_fa2();
  // Scores: 3.0e38 fits in fp32, 3.6e38 does not.
  EXPECT_LT(bound_of(c, equal_keys(2, 1e19, 3.0e19, 1, 1e-38), DType::fp32).o[0].deterministic, 1e-3);
  EXPECT_EQ(bound_of(c, equal_keys(2, 1e19, 3.6e19, 1, 1e-38), DType::fp32).o[0].deterministic, HUGE_VAL);
  // Accumulated values: four keys of weight 1 and 8e37 fit, and of 9e37 do not, though O itself would.
  EXPECT_LT(bound_of(c, equal_keys(4, 1, 1, 8e37), DType::fp32).o[0].deterministic, 1e33);
  EXPECT_EQ(bound_of(c, equal_keys(4, 1, 1, 9e37), DType::fp32).o[0].deterministic, HUGE_VAL);
  // The same sum over keys that weigh nothing fits.
  RowValues x = equal_keys(8, 1, 1, 3e38);
  for (int j = 1; j < 8; ++j) x.k[j] = -100;
  EXPECT_LT(bound_of(c, x, DType::fp32).o[0].deterministic, 1e33);
  // Values cancel, partial sums do not.
  RowValues y = equal_keys(4, 1, 1, 3e38);
  y.v = {3e38, 3e38, -3e38, -3e38};
  EXPECT_EQ(bound_of(c, y, DType::fp32).o[0].deterministic, HUGE_VAL);
  // fp16: 20000 on four equal keys is accumulated in fp32; 65504 rounds to itself.
  const attn_contract h = contract_of(ATTN_ALG_FA2, ATTN_FP16, ATTN_FP32, ATTN_FP16);
  EXPECT_LT(bound_of(h, equal_keys(4, 1, 1, 20000), DType::fp16).o[0].deterministic, 40);
  EXPECT_LT(bound_of(h, equal_keys(4, 1, 1, 65504), DType::fp16).o[0].deterministic, 60);
}

TEST(BoundRows, LazyRescalingMayOverflowP) {
  attn_contract c = contract_of(ATTN_ALG_FA2, ATTN_FP16, ATTN_FP32, ATTN_FP16);
  c.rescale = ATTN_RESCALE_LAZY;
  RowValues x = equal_keys(8, 1, 0, 1);
  for (int j = 4; j < 8; ++j) x.k[j] = 11.5;  // e^11.5 = 98716 > 65504
  c.lazy_threshold = 8;
  EXPECT_LT(bound_of(c, x, DType::fp32).o[0].deterministic, 0.01);
  c.lazy_threshold = 20;
  EXPECT_EQ(bound_of(c, x, DType::fp32).o[0].deterministic, HUGE_VAL);
  for (int j = 4; j < 8; ++j) x.k[j] = 10;
  EXPECT_LT(bound_of(c, x, DType::fp32).o[0].deterministic, 0.01);
}

TEST(BoundRows, IllConditionedRowsAreHeldByTheirHull) {
  Random r(3);
  RowValues x = make_row(Kind::vacuous, 32, 16, 8, DType::bf16, 8, r);
  x.scale *= 64;
  const attn_contract c = contract_of(ATTN_ALG_FA2, ATTN_BF16, ATTN_FP32, ATTN_BF16);
  const RowBound b = bound_of(c, x, DType::fp32);
  EXPECT_GT(b.weight_error, 1);
  for (std::int64_t e = 0; e < 8; ++e) {
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (std::int64_t j = 0; j < x.n; ++j) {
      low = std::min(low, x.v[j * 8 + e]);
      high = std::max(high, x.v[j * 8 + e]);
    }
    EXPECT_LT(b.o[e].deterministic, 1.2 * (high - low) + 0.1) << "never worse than the hull";
  }
  EXPECT_TRUE(b.lse.ill_conditioned);
  EXPECT_LT(b.lse.deterministic, 1e3);
}

TEST(BoundRows, ExpectedBoundNeverExceedsTheDeterministicOne) {
  Random r(11);
  const RowValues x = make_row(Kind::gaussian, 200, 32, 8, DType::fp32, 16, r);
  const RowBound b = bound_of(fp32_fa2(), x, DType::fp32, 16);
  ASSERT_TRUE(b.expected_valid);
  for (const ElementBound& e : b.o) {
    EXPECT_LT(expected_bound(e, 0, 6), 0.3 * e.deterministic);
    EXPECT_LE(expected_bound(e, 0, 1e9), e.deterministic);
    EXPECT_LT(expected_bound(e, 0, 4), expected_bound(e, 0, 6));
  }
  ElementBound nothing;
  nothing.deterministic = nothing.before_rounding = 1;
  EXPECT_EQ(expected_bound(nothing, 0, 6), 1) << "spread and drift were never filled in";
  nothing.spread = std::nan("");
  EXPECT_EQ(expected_bound(nothing, 0, 6), 1);
}

}  // namespace
}  // namespace attest::bound_test
