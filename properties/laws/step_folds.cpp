// step-folds: the step, folded, is the forward kernel.
#include <algorithm>
#include <cmath>
#include <limits>

#include "properties/laws/common.h"
#include "properties/laws/fold.h"
#include "properties/laws/table.h"

namespace attest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The forward problem whose scores are those of the step, exactly: q holds the scores and k is the identity, so that
// each product has one term. Blocked keys become a mask.
Case forward_case(const Case& step, const StepInputs& in, double largest) {
  Case f;
  f.op = Op::forward;
  f.out = OutDType::accumulator;
  f.shape.tq = in.rows;
  f.shape.tk = f.shape.d_qk = in.keys;
  f.shape.d_v = std::max<std::int64_t>(in.d_v, 1);
  f.scale = 1.0;
  f.tiling = step.tiling;
  std::vector<double> q, k(in.keys * in.keys, 0.0);
  std::vector<std::uint8_t> visible;
  for (double s : in.scores) {
    visible.push_back(s == -kInfinity ? 0 : 1);
    q.push_back(s == -kInfinity ? 0.0 : std::clamp(s, -largest, largest));
  }
  for (std::int64_t j = 0; j < in.keys; ++j) k[j * in.keys + j] = 1;
  set_literal(f, "q", std::move(q));
  set_literal(f, "k", std::move(k));
  set_literal(f, "v", in.d_v > 0 ? in.v : std::vector<double>(in.keys, 1.0));
  f.mask.visible.literal = std::move(visible);
  f.mask.visible.mask_shape = {1, 1, in.rows, in.keys};
  return f;
}

// Scores as the forward problem's format rounds them, from the empty state.
StepInputs rounded(const StepInputs& in, const Problem& forward) {
  StepInputs out = in;
  const auto q = forward.input("q");
  for (std::size_t n = 0; n < out.scores.size(); ++n)
    if (out.scores[n] != -kInfinity) out.scores[n] = q[n];
  std::fill(out.initial.m.begin(), out.initial.m.end(), -kInfinity);
  std::fill(out.initial.l.begin(), out.initial.l.end(), 0.0);
  std::fill(out.initial.acc.begin(), out.initial.acc.end(), 0.0);
  return out;
}

CheckResult check(const Case& c, const Kernel& kernel, const LawContext& context) {
  const Problem original(c, formats_for(kernel));
  StepInputs in(original);
  if (in.keys == 0 || in.rows == 0) return Tally().finish("the problem has no rows or no keys");
  const attn_kernel* twin = sibling(kernel, ATTN_OP_FORWARD, ATTN_ALG_FA2);
  if (!twin) twin = sibling(kernel, ATTN_OP_FORWARD);
  const Kernel forward = twin ? as_kernel(twin, kernel) : kernel;
  const Case f = forward_case(c, in, facts(formats_for(forward).storage).max);
  Problem fp(f, formats_for(forward));
  in = rounded(in, fp);

  Random random = choices(context, c, 0x666f6c64);
  const auto cuts = random.chance(0.5) ? even_cuts(in.keys, random.between(1, 9)) : random_cuts(in.keys, false, random);
  const Folded folded = fold_blocks(kernel, c, in, cuts);
  if (folded.execution.status != Outcome::pass) return stopped(folded.execution);
  const bool with_forward = twin && execute(forward, fp).status == Outcome::pass;
  const auto o = with_forward ? fp.output("o") : std::vector<double>{};
  const auto lse = with_forward && fp.has_output("lse") ? fp.output("lse") : std::vector<double>{};

  Tally tally;
  for (std::int64_t r = 0; r < in.rows; ++r) {
    const RowIndex at{0, 0, r};
    const Evaluated row = evaluate_row(forward, fp, at);
    const bool empty = row.row.size() == 0;
    const StepBound bound = fold_bound(kernel, in, r, cuts);
    const bool loose = bound.state().ill_conditioned;
    const auto judge_here = [&](std::int64_t e, double got, double allowed, TruthElement truth) {
      // The last division and logarithm are the harness's own, in 64-bit precision.
      ElementBound b;
      b.deterministic = allowed + 0x1p-60 * std::abs(got);
      b.ill_conditioned = loose;
      tally.add(judge(truth, b, got), got, truth.hi + truth.lo, b.deterministic,
                [&] { return place(at, e) + " of the folded step"; });
    };
    const long double l = folded.state.l[r];
    const double step_lse = empty ? static_cast<double>(folded.state.m[r])
                                  : static_cast<double>(static_cast<long double>(folded.state.m[r]) + std::log(l));
    TruthElement lse_truth = row.truth.lse;
    if (empty) lse_truth.kind = TruthKind::neg_inf;
    if (kernel.abi->contract.lse_base == ATTN_LSE_BASE_E && forward.abi->contract.lse_base == ATTN_LSE_BASE_E) {
      judge_here(-1, step_lse, empty ? 0 : bound.lse(), lse_truth);
      if (!lse.empty() && !empty)
        within_both(tally, step_lse, bound.lse() + 0x1p-60 * std::abs(step_lse), lse[lse_index(fp, at)],
                    row.bound.lse.deterministic, 0, [&] { return place(at, -1) + " step against forward"; });
    }
    const auto o_bound = empty ? std::vector<double>(in.d_v, 0.0) : bound.o();
    for (std::int64_t e = 0; e < in.d_v; ++e) {
      const long double acc = folded.state.acc_row(r)[e];
      const double step_o = empty ? static_cast<double>(acc) : static_cast<double>(acc / l);
      judge_here(e, step_o, o_bound[e], row.truth.o[e]);
      if (!o.empty())
        within_both(tally, step_o, o_bound[e] + 0x1p-60 * std::abs(step_o), o[o_index(fp, at, e)],
                    row.bound.o[e].deterministic, 0, [&] { return place(at, e) + " step against forward"; });
    }
  }
  return tally.finish("the problem has no output elements");
}

void shape(Case& c, Random& random) {
  at_least(c.shape.tq, 1, random);
  at_least(c.shape.tk, 2, random, 10);
  // The forward problem has d_qk = Tk.
  if (c.shape.tk > 40) c.shape.tk = random.between(20, 40);
}

}  // namespace

Law step_folds_law() {
  return {"step-folds", "Folding the step over blocks agrees with the truth and with forward within both bounds.",
          why_not_step, check, shape};
}

}  // namespace attest
