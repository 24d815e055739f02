// The verdict is a pure function of truth, radius, bound and output. Every class, both sides of every edge.
#include "oracle/verdict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace attest {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::nan("");

TruthElement finite(double hi, double lo = 0, double radius = 0) { return {TruthKind::finite, hi, lo, radius}; }
TruthElement of_kind(TruthKind kind) { return {kind, 0, 0, 0}; }

ElementBound bound(double b, bool ill_conditioned = false) {
  ElementBound e;
  e.deterministic = b;
  e.ill_conditioned = ill_conditioned;
  return e;
}

Verdict verdict(const TruthElement& t, double b, double got) { return judge(t, bound(b), got).verdict; }

TEST(VerdictJudge, ClassesBeforeNumbers) {
  struct Row {
    TruthKind want;
    double got;
    Verdict verdict;
  };
  const Row table[] = {
      {TruthKind::nan, nan, Verdict::pass},        {TruthKind::nan, 0, Verdict::fail},
      {TruthKind::nan, inf, Verdict::fail},        {TruthKind::nan, -nan, Verdict::pass},
      {TruthKind::zero, 0, Verdict::pass},         {TruthKind::zero, -0.0, Verdict::pass},
      {TruthKind::zero, 0x1p-1074, Verdict::fail}, {TruthKind::zero, nan, Verdict::fail},
      {TruthKind::zero, -inf, Verdict::fail},      {TruthKind::neg_inf, -inf, Verdict::pass},
      {TruthKind::neg_inf, inf, Verdict::fail},    {TruthKind::neg_inf, -1e308, Verdict::fail},
      {TruthKind::neg_inf, nan, Verdict::fail},    {TruthKind::pos_inf, inf, Verdict::pass},
      {TruthKind::pos_inf, -inf, Verdict::fail},   {TruthKind::pos_inf, 3e38, Verdict::fail},
      {TruthKind::pos_inf, nan, Verdict::fail},    {TruthKind::finite, nan, Verdict::fail},
      {TruthKind::finite, inf, Verdict::fail},     {TruthKind::finite, -inf, Verdict::fail},
      {TruthKind::finite, 0, Verdict::pass},       {TruthKind::finite, -0.0, Verdict::pass},
  };
  for (const Row& r : table) {
    // No finite bound excuses a wrong class.
    for (const double b : {0.0, 1.0, 1e308}) {
      const Judgement j = judge(of_kind(r.want), bound(b), r.got);
      EXPECT_EQ(j.verdict, r.verdict) << "kind " << static_cast<int>(r.want) << " got " << r.got << " bound " << b;
      if (j.verdict == Verdict::fail) {
        EXPECT_EQ(j.ratio, inf);
      }
    }
    EXPECT_EQ(verdict(of_kind(r.want), inf, r.got), Verdict::vacuous) << "an infinite bound admits anything";
  }
}

// Whether a + b is a double (two-sum).
bool exact_sum(double a, double b) {
  const double s = a + b, t = s - a;
  return (a - (s - t)) + (b - t) == 0;
}

TEST(VerdictJudge, OnTheBoundPassesAndOneUlpBeyondFails) {
  int edges = 0;
  for (const double want : {0.0, 1.0, -3.5, 1e-310, 0x1p-1070, 1e300}) {
    for (const double b : {0x1p-20, 0x1p-1060, 1.0, 1e290}) {
      const double on = want + b, below = want - b;
      edges += exact_sum(want, b) + exact_sum(want, -b);
      if (exact_sum(want, b)) {
        EXPECT_EQ(verdict(finite(want), b, on), Verdict::pass) << want << " " << b;
        EXPECT_EQ(verdict(finite(want), b, std::nextafter(on, inf)), Verdict::fail) << want << " " << b;
        EXPECT_EQ(verdict(finite(want), std::nextafter(b, 0), on), Verdict::fail) << want << " " << b;
      }
      if (exact_sum(want, -b)) {
        EXPECT_EQ(verdict(finite(want), b, below), Verdict::pass) << want << " " << b;
        EXPECT_EQ(verdict(finite(want), b, std::nextafter(below, -inf)), Verdict::fail) << want << " " << b;
      }
    }
  }
  EXPECT_GT(edges, 12);
  // The low part of the truth counts to the last bit, far below what |got - want| could hold.
  EXPECT_EQ(verdict(finite(1, 0x1p-80), 0x1p-20, 1 + 0x1p-20), Verdict::pass);
  EXPECT_EQ(verdict(finite(1, -0x1p-80), 0x1p-20, 1 + 0x1p-20), Verdict::fail);
  EXPECT_EQ(verdict(finite(1, -0x1p-1074), 0x1p-20, 1 + 0x1p-20), Verdict::fail);
  EXPECT_EQ(verdict(finite(1, 0x1p-1074), 0x1p-20, 1 + 0x1p-20), Verdict::pass);
}

TEST(VerdictJudge, ARadiusAcrossTheBoundIsUndecided) {
  const double b = 0x1p-10;
  EXPECT_EQ(verdict(finite(1, 0, 0x1p-30), b, 1 + b - 0x1p-30), Verdict::pass);
  EXPECT_EQ(verdict(finite(1, 0, 0x1p-30), b, 1 + b - 0x1p-31), Verdict::undecided);
  EXPECT_EQ(verdict(finite(1, 0, 0x1p-30), b, 1 + b), Verdict::undecided);
  EXPECT_EQ(verdict(finite(1, 0, 0x1p-30), b, 1 + b + 0x1p-30), Verdict::undecided);
  EXPECT_EQ(verdict(finite(1, 0, 0x1p-30), b, 1 + b + 0x1p-29), Verdict::fail);
  EXPECT_EQ(verdict(finite(1, 0, inf), b, 1), Verdict::undecided);
  EXPECT_EQ(verdict(finite(1, 0, 1), 0, 1), Verdict::undecided);
  EXPECT_EQ(verdict(finite(1, 0, 0), 0, 1), Verdict::pass);
}

TEST(VerdictJudge, NoNumberNeverPasses) {
  EXPECT_EQ(verdict(finite(nan), 1, 0), Verdict::undecided);
  EXPECT_EQ(verdict(finite(0, nan), 1, 0), Verdict::undecided);
  EXPECT_EQ(verdict(finite(0, 0, nan), 1, 0), Verdict::undecided);
  EXPECT_EQ(verdict(finite(0), nan, 0), Verdict::undecided);
  EXPECT_EQ(verdict(finite(0), nan, nan), Verdict::fail);
  EXPECT_EQ(verdict(finite(0), -1, 0), Verdict::fail);
}

TEST(VerdictJudge, HugeValuesDoNotOverflowTheComparison) {
  const double big = std::numeric_limits<double>::max();
  EXPECT_EQ(verdict(finite(big), 1e300, -big), Verdict::fail);
  EXPECT_EQ(verdict(finite(big), 0, big), Verdict::pass);
  EXPECT_EQ(verdict(finite(-big), big, big), Verdict::fail);
  EXPECT_EQ(judge(finite(big), bound(1e300), -big).ratio, inf);
}

TEST(VerdictJudge, IllConditionedHoldsButDoesNotPass) {
  EXPECT_EQ(judge(finite(1), bound(0.5, true), 1.25).verdict, Verdict::vacuous);
  EXPECT_EQ(judge(finite(1), bound(0.5, true), 1.75).verdict, Verdict::fail);
  EXPECT_EQ(judge(finite(1), bound(0.5, true), nan).verdict, Verdict::fail);
  EXPECT_EQ(judge(finite(1, 0, 0.125), bound(0.5, true), 1.5).verdict, Verdict::undecided);
  EXPECT_EQ(judge(of_kind(TruthKind::zero), bound(0, true), 0).verdict, Verdict::pass) << "classes are exact";
}

TEST(VerdictJudge, ErrorAndRatioAreTheDistanceFromTheTruth) {
  const Judgement j = judge(finite(1, 0x1p-60), bound(0x1p-10), 1 + 0x1p-12);
  EXPECT_DOUBLE_EQ(j.error, 0x1p-12 - 0x1p-60);
  EXPECT_DOUBLE_EQ(j.ratio, j.error / 0x1p-10);
  EXPECT_EQ(judge(finite(1), bound(0), 1).ratio, 0);
  EXPECT_TRUE(std::isnan(judge(finite(1), bound(1), nan).error));
}

TEST(VerdictJudge, PrecedenceDoesNotDependOnOrder) {
  Verdict all[] = {Verdict::pass, Verdict::vacuous, Verdict::undecided, Verdict::fail};
  std::sort(std::begin(all), std::end(all));
  for (const Verdict a : all) {
    EXPECT_EQ(worst(a, a), a);
    EXPECT_EQ(worst(a, Verdict::fail), Verdict::fail);
    EXPECT_EQ(worst(a, Verdict::pass), a);
    for (const Verdict b : all) {
      EXPECT_EQ(worst(a, b), worst(b, a));
      for (const Verdict c : all) EXPECT_EQ(worst(worst(a, b), c), worst(a, worst(b, c)));
    }
  }
  EXPECT_EQ(worst(Verdict::vacuous, Verdict::undecided), Verdict::undecided);
}

TEST(VerdictJudge, SmallestAndLargestNumbersMeetExactly) {
  // The error is one unit of 2^-1074, beside numbers whose sums would overflow.
  constexpr double largest = 0x1.fffffffffffffp1023, smallest = 0x1p-1074;
  EXPECT_EQ(judge(finite(0, 0, largest), bound(largest), smallest).verdict, Verdict::undecided);
  EXPECT_EQ(judge(finite(smallest, 0, largest), bound(largest), smallest).verdict, Verdict::pass);
  EXPECT_EQ(judge(finite(0, largest, 0), bound(largest), -smallest).verdict, Verdict::fail);
  EXPECT_EQ(judge(finite(0, largest, 0), bound(largest), smallest).verdict, Verdict::pass);
}

TEST(VerdictJudge, NamesAreTheVocabulary) {
  EXPECT_EQ(name(Verdict::pass), "PASS");
  EXPECT_EQ(name(Verdict::vacuous), "VACUOUS");
  EXPECT_EQ(name(Verdict::undecided), "UNDECIDED");
  EXPECT_EQ(name(Verdict::fail), "FAIL");
  EXPECT_EQ(name(Outcome::rejected), "REJECTED");
  EXPECT_EQ(name(Outcome::not_run), "NOT_RUN");
  EXPECT_EQ(outcome_of(Verdict::undecided), Outcome::undecided);
  EXPECT_EQ(outcome_of(Verdict::fail), Outcome::fail);
}

TEST(VerdictExplain, SaysEverythingOnOneLine) {
  const std::string line = explain(finite(0.1, 0, 1e-20), bound(1e-4), 0x1.9ap-4 + 0x1p-9, DType::fp16);
  EXPECT_NE(line.find("FAIL: got 0x1.a"), std::string::npos) << line;
  EXPECT_NE(line.find("want 0x1.999999999999ap-4 (0.1"), std::string::npos) << line;
  EXPECT_NE(line.find("error/bound 20.51"), std::string::npos) << line;
  EXPECT_NE(line.find("ulps of fp16"), std::string::npos) << line;
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_NE(explain(of_kind(TruthKind::neg_inf), bound(1), 3, DType::fp32).find("want -inf; the class differs"),
            std::string::npos);
  EXPECT_NE(explain(finite(1), bound(inf), nan, DType::fp32).find("VACUOUS: got nan"), std::string::npos);
}

}  // namespace
}  // namespace attest
