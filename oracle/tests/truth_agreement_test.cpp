// Claim: for every row, |tier - exact512| <= radius of tier + radius of exact512, and the radius is of use: not wider
// than the errors that the arithmetic can make. The exact tiers enclose one another.
#include <gtest/gtest.h>

#include <cstdio>

#include "oracle/tests/truth_support.h"

namespace attest::test {
namespace {

struct Tally {
  std::int64_t elements = 0, escalated = 0;
  double worst = 0;         // largest |error| / radius
  double relative_sum = 0;  // of log2(radius / |value|)
  std::int64_t relative_count = 0;

  void add(const TruthElement& got, const TruthElement& exact, const std::string& where) {
    ++elements;
    ASSERT_EQ(got.kind, exact.kind) << where;
    ASSERT_FALSE(std::isnan(got.radius)) << where;
    if (std::isinf(got.radius)) {
      ++escalated;
      return;
    }
    const double error = distance(got, exact);
    ASSERT_TRUE(overlap(got, exact)) << where << ": " << error << " > " << got.radius << " + " << exact.radius;
    if (got.radius > 0) worst = std::max(worst, error / got.radius);
    if (got.radius > 0 && exact.hi != 0) {
      relative_sum += std::log2(got.radius / std::fabs(exact.hi));
      ++relative_count;
    }
  }
};

constexpr std::uint64_t seed = 20240607;

TEST(TruthAgreement, FastTiersLieWithinTheirRadiiOfExact) {
  std::int64_t total = 0;
  for (const Family& family : families()) {
    Tally tally[2];
    Random random(seed);
    for (int repeat = 0; repeat < 14; ++repeat) {
      constexpr std::int64_t sizes[] = {1, 2, 3, 5, 8, 13, 17, 31, 64, 33, 7, 129, 40, 4};
      const std::int64_t n = sizes[repeat], d = 1 + random.below(24), d_v = 200 + random.below(200);
      const Inputs in = family.make(random, n, d, d_v);
      const RowTruth exact = truth(in.row(), Tier::exact512);
      for (int t = 0; t < 2; ++t) {
        const RowTruth fast = truth(in.row(), fast_tiers[t]);
        const std::string where = family.name + ", " + name(fast_tiers[t]) + ", seed " + std::to_string(seed) +
                                  ", repeat " + std::to_string(repeat);
        for (std::int64_t e = 0; e < d_v; ++e) tally[t].add(fast.o[e], exact.o[e], where + ", o " + std::to_string(e));
        tally[t].add(fast.lse, exact.lse, where + ", lse");
        if (HasFatalFailure()) return;
      }
    }
    total += tally[0].elements + tally[1].elements;
    std::printf("  %-46s", family.name.c_str());
    for (const Tally& t : tally)
      std::printf("  max error/radius %.3f, mean radius 2^%.1f |o|, escalated %4.1f %%", t.worst,
                  t.relative_sum / std::max<double>(1, t.relative_count), 100.0 * t.escalated / t.elements);
    std::printf("\n");
    EXPECT_GT(tally[1].worst, 0) << family.name;
  }
  std::printf("  %lld elements\n", static_cast<long long>(total));
  EXPECT_GE(total, 100000);
}

TEST(TruthAgreement, ExactTiersEncloseOneAnother) {
  for (const Family& family : families()) {
    Random random(seed + 1);
    for (int repeat = 0; repeat < 3; ++repeat) {
      const Inputs in = family.make(random, 1 + 11 * repeat, 1 + random.below(24), 8);
      const RowTruth a = truth(in.row(), Tier::exact128), b = truth(in.row(), Tier::exact256),
                     c = truth(in.row(), Tier::exact512);
      for (std::int64_t e = 0; e < 8; ++e) {
        ASSERT_TRUE(overlap(a.o[e], b.o[e]) && overlap(b.o[e], c.o[e]) && overlap(a.o[e], c.o[e])) << family.name;
        // At 512 bits nothing but the conversion to hi + lo is left.
        ASSERT_LE(c.o[e].radius, std::max(0x1p-104 * std::fabs(c.o[e].hi), 0x1p-1074)) << family.name;
        ASSERT_LE(b.o[e].radius, a.o[e].radius + 0x1p-1074) << family.name;
      }
      ASSERT_TRUE(overlap(a.lse, b.lse) && overlap(b.lse, c.lse)) << family.name;
    }
  }
}

// On ordinary rows the radius must be a small multiple of what the arithmetic does.
TEST(TruthAgreement, RadiiAreUseful) {
  Random random(seed + 2);
  const Inputs in = families()[0].make(random, 64, 64, 64);
  const RowTruth a = truth(in.row(), Tier::fp64), b = truth(in.row(), Tier::double_double);
  for (std::int64_t e = 0; e < 64; ++e) {
    EXPECT_LT(a.o[e].radius, 0x1p-44);
    EXPECT_LT(b.o[e].radius, 0x1p-92);
    EXPECT_GT(b.o[e].radius, 0);
  }
  EXPECT_LT(a.lse.radius, 0x1p-44);
  EXPECT_LT(b.lse.radius, 0x1p-92);
}

// The score of the largest key is wrong by a whole rounding of its partial sums, that of the other is exact: every part
// of the radius but the error of the largest score is far too small to hold.
TEST(TruthAgreement, TheErrorOfTheLargestScoreReachesAll) {
  Random random(seed + 4);
  for (double size : {0x1p20, 0x1p43, 0x1p48, 0x1p53, 0x1p80, 0x1p105})
    for (int repeat = 0; repeat < 50; ++repeat) {
      Inputs in(2, 3, 2);
      in.q = {1, 1, 1};
      in.k = {size, 1 + random.uniform(), -size, 0, random.uniform(), 0};
      in.v = {1, 0, 0, 1};
      const RowTruth exact = truth(in.row(), Tier::exact512);
      for (Tier tier : fast_tiers) {
        const RowTruth fast = truth(in.row(), tier);
        for (int e = 0; e < 2; ++e) ASSERT_TRUE(overlap(fast.o[e], exact.o[e])) << size << ", " << name(tier);
        ASSERT_TRUE(overlap(fast.lse, exact.lse)) << size << ", " << name(tier);
      }
    }
}

// A weight by itself (V one-hot, behind a key with V = 0): its error is that of the gap, which rounds by u * 700.
TEST(TruthAgreement, RoundingOfTheGapIsCovered) {
  Random random(seed + 5);
  for (int repeat = 0; repeat < 200; ++repeat) {
    const double top = random.between(0, 1e-3), other = -random.between(300, 700), zero = 0, one = 1;
    const StepRow step{top, 1, {0}, {other}, {&one}};
    const MergeRow merge{StateKind::olse, {top, other}, {}, {&zero, &one}, 1};
    for (Tier tier : fast_tiers) {
      ASSERT_TRUE(overlap(step_truth(step, tier).acc[0], step_truth(step, Tier::exact512).acc[0])) << name(tier);
      ASSERT_TRUE(overlap(merge_truth(merge, tier).acc[0], merge_truth(merge, Tier::exact512).acc[0])) << name(tier);
    }
  }
}

TEST(TruthAgreement, OneElementEqualsItsRow) {
  for (const Family& family : families()) {
    Random random(seed + 3);
    const Inputs in = family.make(random, 9, 5, 6);
    for (Tier tier : all_tiers) {
      const RowTruth whole = truth(in.row(), tier);
      RowOracle oracle(in.row());
      for (std::int64_t e = -1; e < 6; ++e) {
        const TruthElement want = e < 0 ? whole.lse : whole.o[e];
        for (const TruthElement& got :
             {element_truth(in.row(), {}, e, tier), e < 0 ? oracle.lse(tier) : oracle.o(e, tier)}) {
          ASSERT_EQ(got.hi, want.hi) << family.name << ", " << name(tier);
          ASSERT_EQ(got.lo, want.lo) << family.name << ", " << name(tier);
          ASSERT_EQ(got.radius, want.radius) << family.name << ", " << name(tier);
        }
      }
    }
  }
}

}  // namespace
}  // namespace attest::test
