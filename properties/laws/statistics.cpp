// expected, unbiased: the two laws that judge errors as random quantities. They may only see values that were
// generated, never searched for: an adversary breaks any statistical bound.
#include <cmath>

#include "oracle/recipe.h"
#include "properties/laws/common.h"
#include "properties/laws/table.h"

namespace attest {
namespace {

constexpr std::int64_t kOutputs = 2000;  // fewest outputs of which z says something
constexpr int kSeeds = 96;               // most problems that are pooled to get there

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
// reaches 0.953 of the threshold, with an exp of 2.5 u 1.003; a quotient that is high by u (2 u) is over it alone.
// Beyond these limits `expected` and `encloses` speak alone.
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

struct Moments {
  double sum = 0;
  std::int64_t count = 0, invalid = 0;
};

// Adds (error / expected standard deviation)^2 of every output of one problem.
Execution pool(const Case& c, const Kernel& kernel, const LawContext& context, Moments& m) {
  const Run run = run_case(kernel, c);
  if (!run.ok()) return run.execution;
  const Problem& p = run.problem;
  const auto o = p.output("o");
  for (const RowIndex& at : judged_rows(p, context)) {
    const Evaluated row = evaluate_row(kernel, p, at, true);
    // One visible key leaves nothing to average: O is V, exactly.
    if (row.row.size() < 2) continue;
    if (!row.bound.expected_valid) {
      ++m.invalid;
      continue;
    }
    for (std::int64_t e = 0; e < row.row.d_v; ++e) {
      const ElementBound& b = row.bound.o[e];
      const double error = (o[o_index(p, at, e)] - row.truth.o[e].hi) - row.truth.o[e].lo;
      // S and half an ulp bound uniform errors, whose variance is a third of the square of their half range.
      const double variance = (b.spread * b.spread + b.half_ulp * b.half_ulp) / 3;
      if (!(variance > 0) || !std::isfinite(variance)) continue;
      m.sum += error * error / variance;
      ++m.count;
    }
    if (m.count >= 2 * kOutputs) break;
  }
  return run.execution;
}

// Largest z that a correct kernel may show, by what its errors are made of. Measured over 3,480 generated cases of at
// least 2,000 outputs (58 for each of 30 CPU kernels, and again for stored outputs; gaussian, uniform, outliers):
//   before output rounding                  0.734 at most
//   stored in 16 bits, P in 16 bits         0.791, 0.882 for a readable kernel of the same Contract
//   stored in 16 bits, P not rounded        1.027: nothing but the output's own rounding, where the model is exact
// and about a tenth on top. A truncated P gives 1.16 to 1.45 (numerics.md, section 4).
double threshold(const attn_contract& contract, const Case& c) {
  const bool output_rounds = c.out == OutDType::storage && contract.in_dtype != contract.acc_dtype;
  if (!output_rounds) return 0.82;
  return contract.p_dtype == contract.acc_dtype ? 1.12 : 0.95;
}

CheckResult check_unbiased(const Case& c, const Kernel& kernel, const LawContext& context) {
  Moments m;
  Case x = c;
  for (int n = 0; n < kSeeds && m.count < kOutputs; ++n) {
    x.values.seed = c.values.seed + static_cast<std::uint64_t>(n);
    const Execution run = pool(x, kernel, context, m);
    if (run.status != Outcome::pass) return stopped(run);
    if (m.count == 0 && m.invalid > 0) break;  // other seeds change nothing about that
  }
  Tally tally;
  if (m.count < kOutputs) {
    tally.note(Verdict::vacuous, m.invalid > 0 ? "the expected tier is not derived for this Contract and row"
                                               : "fewer than 2000 outputs in 96 problems of this shape");
    return tally.finish("");
  }
  const double z = std::sqrt(m.sum / static_cast<double>(m.count)), most = threshold(kernel.abi->contract, c);
  Judgement j;
  j.error = z;
  j.ratio = z / most;
  j.verdict = z <= most ? Verdict::pass : Verdict::fail;
  tally.add(j, z, 0, most, [&] { return "aggregate z over " + std::to_string(m.count) + " outputs"; });
  return tally.finish("");
}

void shape_random(Case& c, Random& random) {
  at_least(c.shape.tq, 1, random);
  at_least(c.shape.tk, 2, random, 20);
  if (random.chance(0.7)) c.tiling.splits = 1;  // where other splits begin is unknown, and then nothing is expected
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
