// expected, unbiased: the two laws that judge errors as random quantities. They may only see values that were
// generated, never searched for: an adversary breaks any statistical bound.
#include <cmath>

#include "oracle/recipe.h"
#include "properties/laws/common.h"
#include "properties/laws/pooling.h"
#include "properties/laws/table.h"
#include "properties/laws/thresholds.h"

namespace attest {
namespace {

std::string why_not(const Case& c, const Kernel& kernel) {
  if (auto why = why_not_forward(c, kernel); !why.empty()) return why;
  const Family* family = find_family(c.values.family);
  if (!family || !family->random || !c.values.tensors.empty()) return "the values are not a random recipe";
  const attn_contract& contract = kernel.abi->contract;
  // Partial sums in an unknown order have no binades to group their roundings by (numerics.md, section 5, W1); what
  // tensor cores add in any order is charged as a drift, in full.
  if (contract.sum_order == ATTN_SUM_ANY && contract.pv_accumulation != ATTN_ACC_TENSOR_CORE)
    return "the expected tier is not derived for sums in any order without tensor cores";
  return "";
}

// z compares errors with the variance of uniform ones, a third of their largest square. That models roundings; it does
// not model an exp or a division that the Contract lets be off by the same amount everywhere, or by one of two amounts:
// with all of a constant's range used up in that way z rises beyond any threshold, and no bound is broken. Only
// constants whose main part is the rounding of the result leave little room for it. Measured on kernels of fp32 that
// use up their Contract: an exp that is off by +-1.5 u and rounded (2 u) with a quotient that is high by u/2 (1.5 u)
// reaches z = 0.781, what the largest of the calibrated kernels do (laws/thresholds.cpp); with an exp of 2.5 u 0.822,
// which would use up their margin; a quotient that is high by u (2 u) is above 0.82 by itself. Beyond these limits
// `expected` and `encloses` speak alone.
constexpr double kMostExp = 2, kMostDivision = 1.5;

std::string why_not_unbiased(const Case& c, const Kernel& kernel) {
  if (auto why = why_not(c, kernel); !why.empty()) return why;
  const attn_contract& contract = kernel.abi->contract;
  if (!(contract.exp_error <= kMostExp) || !(contract.rescale_exp_error <= kMostExp))
    return "the Contract allows more than 2 u at an exp, which need not behave like a rounding";
  if (!(contract.division_error <= kMostDivision))
    return "the Contract allows more than 1.5 u at a division, which need not behave like a rounding";
  return "";
}

CheckResult check_expected_tier(const Case& c, const Kernel& kernel, const LawContext& context) {
  const Run run = run_case(kernel, c);
  if (!run.ok()) return stopped(run.execution);
  const Problem& p = run.problem;
  const auto o = p.output("o");
  const bool has_lse = p.has_output("lse");
  const auto lse = has_lse ? p.output("lse") : std::vector<double>{};
  Tally tally;
  for (const RowIndex& at : judged_rows(p, context)) {
    const Evaluated row = evaluate_row(kernel, p, at, true);
    if (row.row.size() == 0) continue;  // exact: encloses judges it
    if (!row.bound.expected_valid) {
      tally.note(Verdict::vacuous, "the expected tier is not derived for this Contract and row");
      continue;
    }
    for (std::int64_t e = has_lse ? -1 : 0; e < row.row.d_v; ++e) {
      const double got = e < 0 ? lse[lse_index(p, at)] : o[o_index(p, at, e)];
      const TruthElement& t = e < 0 ? row.truth.lse : row.truth.o[e];
      const ElementBound& b = e < 0 ? row.bound.lse : row.bound.o[e];
      const double want = t.hi + t.lo;
      // The radius is added rather than escalated: it is far below what a statistical bound can resolve.
      const double bound = expected_bound(b, want, context.lambda) + t.radius;
      const Judgement j = judge(t, bound, got);
      tally.add(j, got, want, bound, [&] { return place(at, e) + " expected tier"; });
    }
  }
  return tally.finish("no row sees a key");
}

CheckResult check_unbiased(const Case& c, const Kernel& kernel, const LawContext& context) {
  const Pooled pooled = pool_outputs(c, kernel, context);
  if (pooled.execution.status != Outcome::pass) return stopped(pooled.execution);
  Tally tally;
  if (!pooled.enough()) {
    tally.note(Verdict::vacuous, pooled.rows_without > 0 ? "the expected tier is not derived for this Contract and row"
                                                         : "fewer than 2000 outputs in 96 problems of this shape");
    return tally.finish("");
  }
  const double z = pooled.z(), most = unbiased_threshold(kernel.abi->contract, c.out).most;
  Judgement j;
  j.error = z;
  j.ratio = z / most;
  j.verdict = z <= most ? Verdict::pass : Verdict::fail;
  tally.add(j, z, 0, most, [&] { return "aggregate z over " + std::to_string(pooled.outputs) + " outputs"; });
  return tally.finish("");
}

void shape_random(Case& c, Random& random) {
  at_least(c.shape.tq, 1, random);
  at_least(c.shape.tk, 2, random, 20);
  if (random.chance(0.7)) c.tiling.splits = 1;  // where other splits begin is unknown, and then nothing is expected
  // Errors that add up part from those that do not only in long sums.
  if (random.chance(0.15)) {
    c.mask = {};
    c.shape.batch = 1;
    c.shape.tq = random.between(1, 2);
    c.shape.tk = random.between(1000, 2000);
  }
}

void shape_many(Case& c, Random& random) {
  c.mask = {};
  if (random.chance(0.3)) c.mask.causal = Causal::bottom_right;
  c.shape.batch = 1;
  c.shape.tq = random.between(8, 24);
  c.shape.tk = random.between(c.shape.tq, 40);
  c.shape.d_v = random.between(12, 32);
  c.shape.d_qk = random.between(4, 16);
  c.shape.q_heads = c.shape.kv_heads * 2;
  // Where splits begin is the kernel's choice, and without it the expected tier is not defined.
  c.tiling.splits = 1;
  // The output's own rounding is well understood and hides the rest.
  if (random.chance(0.8)) c.out = OutDType::accumulator;
}

}  // namespace

Law expected_law() {
  return {"expected",
          "On random recipes at generated seeds every output lies within its expected bound at lambda = "
          "sqrt(2 ln(2M/p)).",
          why_not,
          check_expected_tier,
          shape_random,
          false};
}

Law unbiased_law() {
  return {"unbiased",
          "On random recipes, over at least 2,000 outputs, the aggregate z stays under the kernel's threshold.",
          why_not_unbiased,
          check_unbiased,
          shape_many,
          false};
}

}  // namespace attest
