// Values that a statistical bound is not made for: errors that repeat key after key, and inputs that were searched for.
// The laws `expected` and `unbiased` say why they do not bind, or pass. (corpus_replay.cpp holds them over the corpus.)
#include <gtest/gtest.h>

#include "oracle/recipe.h"
#include "properties/check.h"
#include "properties/evaluate.h"
#include "properties/laws/common.h"

namespace attest {
namespace {

std::vector<Kernel> forward_kernels() {
  std::vector<Kernel> all = runnable_kernels();
  std::erase_if(all, [](const Kernel& k) { return k.abi->op != ATTN_OP_FORWARD; });
  return all;
}

Case plain(std::int64_t keys) {
  Case c;
  c.shape.tk = keys;
  c.shape.d_v = 3;
  c.mask.causal = Causal::bottom_right;
  c.tiling.splits = 1;
  c.out = OutDType::accumulator;
  return c;
}

// Neither law may fail; where one binds it has judged something.
void never_trips(const Case& c, const Kernel& kernel) {
  for (const char* name : {"expected", "unbiased"}) {
    const Law& law = *find_law(name);
    if (!law.why_not(c, kernel).empty()) continue;
    const CheckResult r = check_case(c, kernel, law, LawContext{});
    EXPECT_NE(r.outcome, Outcome::fail) << kernel.name << " " << name << " " << describe(r) << "\n" << to_text(c);
  }
}

TEST(StatisticsInputs, FamiliesThatAreNotRandomAreNotJudged) {
  const Kernel kernel = forward_kernels().front();
  int judged = 0;
  for (const Family& f : families()) {
    Case c = plain(32);
    c.values.family = f.name;
    for (const char* name : {"expected", "unbiased"}) {
      EXPECT_EQ(find_law(name)->why_not(c, kernel).empty(), f.random) << f.name << " " << name;
    }
    judged += f.random;
  }
  EXPECT_GT(judged, 0);
  // The families of the traps: equal scores, two levels, one key above all, maxima that rise.
  for (const char* name : {"ties", "near-ties", "needle", "swings"}) {
    const Family* f = find_family(name);
    ASSERT_NE(f, nullptr) << name;
    EXPECT_FALSE(f->random) << name;
  }
}

// A search leaves its find as literal numbers, whatever family they are laid over.
TEST(StatisticsInputs, LiteralNumbersAreNotJudged) {
  for (const Kernel& kernel : forward_kernels()) {
    const Case c = frozen(plain(32), kernel);
    for (const char* name : {"expected", "unbiased"}) EXPECT_NE(find_law(name)->why_not(c, kernel), "") << kernel.name;
  }
}

// Values of random families as far as their parameters go: from scores that are all but equal to one key that weighs
// all.
TEST(StatisticsInputs, ParametersOfRandomFamilies) {
  for (const Kernel& kernel : forward_kernels())
    for (const double sigma : {0.0, 0x1p-20, 0x1p-8, 0.125, 8.0, 100.0}) {
      Case c = plain(40);
      c.shape.tq = 16;
      c.shape.d_qk = 8;
      c.shape.d_v = 16;
      c.values.parameters["sigma"] = sigma;
      never_trips(c, kernel);
    }
}

// Equal scores and constant V whose sums are not representable: the same rounding at every key of a binade. The laws do
// not bind; the bound of `expected` holds all the same, since equal roundings are added up before they are squared.
TEST(StatisticsInputs, RepeatedRoundingsStayWithinTheExpectedBound) {
  const LawContext context;
  std::int64_t judged = 0;
  for (const Kernel& kernel : forward_kernels())
    for (const std::int64_t keys : {2, 31, 255, 1000, 2049, 3000})
      for (const double value : {1.0 / 3, 0.1, -1.7, 1 + 0x1p-7}) {
        Case c = plain(keys);
        c.shape.d_v = 1;
        c.values.tensors["q"].literal = {0};
        c.values.tensors["k"].literal.assign(static_cast<std::size_t>(keys), 0);
        c.values.tensors["v"].literal.assign(static_cast<std::size_t>(keys), value);
        EXPECT_NE(find_law("expected")->why_not(c, kernel), "");
        EXPECT_NE(find_law("unbiased")->why_not(c, kernel), "");
        const attest::Run run = run_case(kernel, c);
        ASSERT_TRUE(run.ok()) << kernel.name << " " << run.execution.reason;
        const Evaluated row = evaluate_row(kernel, run.problem, {0, 0, 0}, true);
        if (!row.bound.expected_valid) continue;
        const TruthElement& t = row.truth.o[0];
        const double bound = expected_bound(row.bound.o[0], t.hi + t.lo, context.lambda) + t.radius;
        EXPECT_EQ(judge(t, bound, run.problem.output("o")[0]).verdict, Verdict::pass)
            << kernel.name << ", " << keys << " keys, V = " << value;
        ++judged;
      }
  EXPECT_GT(judged, 500);
}

}  // namespace
}  // namespace attest
