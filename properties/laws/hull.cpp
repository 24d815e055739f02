// hull: attention averages. Speaks where the derived bound says nothing, because the scores are ill-conditioned.
#include <algorithm>
#include <cmath>
#include <limits>

#include "properties/laws/common.h"
#include "properties/laws/table.h"
#include "properties/state.h"

namespace attest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// How far an average with any positive weights may leave the hull of V, |v| <= big. Errors of scores and exponentials
// move the weights, not the hull: what is left is the rounding of P, of the sums (numerator and denominator apart), of
// the divisions and the rescales (each multiplies numerator and denominator of a block by its own rounding), of the
// output, and underflow. First order in u with a factor of 2 for the rest; weights of a division-free split merge
// carry the error of LSE instead of cancelling.
double slack(const attn_contract& c, const Evaluated& row, const KeyPlan& plan, DType out, double big) {
  const FormatFacts acc = facts(dtype_of(c.acc_dtype)), p = facts(dtype_of(c.p_dtype)), o = facts(out);
  const double n = static_cast<double>(row.row.size());
  const double blocks = static_cast<double>(row.row.tk / std::max<std::int64_t>(plan.block_k, 1) + 1);
  const double splits = static_cast<double>(std::max<std::int64_t>(plan.splits, 1));
  double units = 2 * n + 8 * blocks + c.division_error + 8;
  if (c.algorithm == ATTN_ALG_FA1) units += blocks * (4 + c.division_error);
  if (c.split_merge != ATTN_MERGE_NONE) {
    units += splits * (8 + c.division_error + c.exp_error);
    if (c.split_merge == ATTN_MERGE_DIVISION_FREE)
      units += 4 * std::abs(row.stats.lse) + c.log_absolute + c.log_relative * std::log(n + 1) + c.exp_error + 4 * n;
  }
  double relative = 2 * units * acc.u;
  if (c.p_dtype != c.acc_dtype) relative += 2 * (p.u + n * p.half_subnormal);
  if (c.flushes_subnormals) relative += 2 * n * std::ldexp(1.0, acc.min_exponent);
  // Tensor cores drop bits below the largest product of a step.
  if (c.pv_accumulation == ATTN_ACC_TENSOR_CORE)
    relative += 2 * n * std::ldexp(1.0, -c.mma_fraction_bits) + 2 * (n / std::max(c.mma_terms, 1) + blocks) * 2 * acc.u;
  const double floor = (2 * n + 4 * blocks + 4) * std::ldexp(1.0, acc.min_exponent) + o.half_subnormal;
  return relative * big + o.u * big + floor;
}

struct Range {
  double low = kInfinity, high = -kInfinity;
};

// The truth lies in the hull, so that what is outside of it by more than the derived bound is wrong as well.
void check_hull(Tally& tally, const Kernel& kernel, const Problem& p, const LawContext& context, const char* label) {
  const attn_contract& contract = kernel.abi->contract;
  const auto o = p.output("o");
  for (const RowIndex& at : judged_rows(p, context)) {
    const Evaluated row = evaluate_row(kernel, p, at);
    if (row.row.size() == 0 || row.anything) continue;
    const KeyPlan plan = key_plan(contract, row.row.tk, p.abi().tiling);
    for (std::int64_t e = 0; e < row.row.d_v; ++e) {
      Range v;
      bool finite = true;
      for (const double* value : row.row.v) {
        finite &= std::isfinite(value[e]);
        v.low = std::min(v.low, value[e]);
        v.high = std::max(v.high, value[e]);
      }
      const double big = std::max(std::abs(v.low), std::abs(v.high));
      const ElementBound& b = row.bound.o[e];
      if (!finite || b.deterministic == kInfinity || !row.stats.finite) {
        tally.note(Verdict::vacuous, "the Contract admits anything at some elements");
        continue;
      }
      const double own = slack(contract, row, plan, p.out_dtype(), big);
      // std::min would drop a bound that is no number; the tally has to see it.
      const double allowed = std::isnan(b.deterministic) ? b.deterministic : std::min(own, b.deterministic);
      const double got = o[o_index(p, at, e)];
      Judgement j;
      j.error = got < v.low ? v.low - got : got > v.high ? got - v.high : std::isnan(got) ? got : 0;
      j.ratio = j.error == 0 ? 0 : j.error / allowed;
      j.verdict = j.error <= allowed ? Verdict::pass : Verdict::fail;
      tally.add(j, got, got < v.low ? v.low : v.high, allowed, [&] { return place(at, e) + label; });
    }
  }
}

CheckResult check(const Case& c, const Kernel& kernel, const LawContext& context) {
  Tally tally;
  const Run run = run_case(kernel, c);
  if (!run.ok()) return stopped(run.execution);
  check_hull(tally, kernel, run.problem, context, " outside of the hull of its visible V");
  // Every key of a column the same: whatever the weights, they must add up to 1.
  Case constant = frozen(c, kernel);
  auto v = constant.values.tensors.find("v");
  if (v == constant.values.tensors.end()) return tally.finish("no row sees a key");
  auto& values = v->second.literal;
  const std::size_t head = static_cast<std::size_t>(c.shape.tk * c.shape.d_v);
  for (std::size_t n = 0; n < values.size(); ++n)
    values[n] = values[n / head * head + n % static_cast<std::size_t>(c.shape.d_v)];
  const Run flat = run_case(kernel, constant);
  if (!flat.ok()) return stopped(flat.execution);
  check_hull(tally, kernel, flat.problem, context, " where every visible V is the same");
  return tally.finish("no row sees a key");
}

void shape(Case& c, Random& random) {
  at_least(c.shape.tq, 1, random);
  at_least(c.shape.tk, 1, random, 20);
}

}  // namespace

Law hull_law() {
  return {
      "hull",
      "Each output lies in the hull of its visible V, within the bound; constant V returns that constant within the "
      "bound.",
      why_not_forward, check, shape};
}

}  // namespace attest
