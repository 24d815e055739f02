#include <cmath>

#include "properties/evaluate.h"
#include "properties/hunt/hunt.h"
#include "properties/state.h"

namespace attest {
namespace {

void add(HuntScore& s, const Judgement& j, double bound, const std::string& where, std::int64_t i, std::int64_t e) {
  if (j.verdict == Verdict::fail && s.status != Outcome::fail) {
    s.status = Outcome::fail;
    s.reason = "the error is outside of the bound";
  } else if (j.verdict != Verdict::pass || s.status == Outcome::fail || !(j.ratio > s.ratio)) {
    return;
  }
  s.ratio = j.ratio;
  s.error = j.error;
  s.bound = bound;
  s.where = where;
  s.i = i;
  s.e = e;
}

void score_forward(HuntScore& s, const Kernel& kernel, const Problem& p) {
  const auto o = p.output("o");
  const auto lse = p.has_output("lse") ? p.output("lse") : std::vector<double>{};
  for (const RowIndex& at : judged_rows(p, LawContext{})) {
    const Evaluated row = evaluate_row(kernel, p, at);
    for (std::int64_t e = lse.empty() ? 0 : -1; e < row.row.d_v; ++e) {
      const double got = e < 0 ? lse[lse_index(p, at)] : o[o_index(p, at, e)];
      const Judgement j = judge_element(kernel.abi->contract, row, e, got);
      if (e < 0 && j.verdict == Verdict::pass) s.lse = std::max(s.lse, j.ratio);
      if (e < 0 && j.verdict != Verdict::fail) continue;
      add(s, j, (e < 0 ? row.bound.lse : row.bound.o[e]).deterministic, place(at, e), at.i, e);
    }
  }
}

void score_state(HuntScore& s, std::int64_t r, const StateValues& got, const StateBound& bound,
                 const std::function<StateTruth(Tier)>& truth_at) {
  const StateTruth fast = truth_at(Tier::double_double);
  const auto one = [&](const char* tensor, std::int64_t e, double value, double b, const auto& part) {
    ElementBound element;
    element.deterministic = b;
    element.ill_conditioned = bound.ill_conditioned;
    TruthElement t = part(fast);
    Judgement j = judge(t, element, value);
    for (Tier tier : {Tier::exact128, Tier::exact256, Tier::exact512}) {
      const bool settled = j.verdict != Verdict::undecided && t.radius <= b * 0x1p-10;
      if (t.kind != TruthKind::finite || !std::isfinite(b) || settled || (b == 0 && t.radius == 0)) break;
      t = part(truth_at(tier));
      j = judge(t, element, value);
    }
    add(s, j, b, place(tensor, r, e), r, e);
  };
  one("m", -1, got.m[r], bound.m, [](const StateTruth& t) { return t.m; });
  if (!got.l.empty()) one("l", -1, got.l[r], bound.l, [](const StateTruth& t) { return t.l; });
  for (std::int64_t e = 0; e < got.d_v; ++e)
    one("acc", e, got.acc_row(r)[e], bound.acc[e], [e](const StateTruth& t) { return t.acc[e]; });
}

void score_step(HuntScore& s, const Kernel& kernel, const Problem& p) {
  const StepInputs in(p);
  const StateValues got = output_state(p);
  for (std::int64_t r = 0; r < in.rows; ++r) {
    const StepRow row = in.row(r, 0, in.keys);
    StepBound bound(kernel.abi->contract, row.m, row.l, row.acc);
    bound.fold(row.scores, row.v);
    score_state(s, r, got, bound.state(), [&](Tier t) { return step_truth(row, t); });
  }
}

void score_merge(HuntScore& s, const Kernel& kernel, const Problem& p) {
  const StateKind kind = p.source().state;
  const StateValues a = read_state(p.abi().a), b = read_state(p.abi().b), got = output_state(p);
  for (std::int64_t r = 0; r < a.rows; ++r) {
    const MergeRow row = merge_row(kind, {&a, &b}, r);
    const StateBound exact = exact_state(a.d_v);
    const StateBound bound =
        merge_bound(kernel.abi->contract, merge_side(kind, a, r, exact), merge_side(kind, b, r, exact));
    score_state(s, r, got, bound, [&](Tier t) { return merge_truth(row, t); });
  }
}

}  // namespace

HuntScore hunt_score(const Kernel& kernel, const Case& c) {
  HuntScore s;
  Problem p(c, formats_for(kernel));
  const Execution ran = execute(kernel, p);
  s.status = ran.status;
  s.reason = ran.reason;
  if (ran.status != Outcome::pass) return s;
  if (c.op == Op::forward) score_forward(s, kernel, p);
  if (c.op == Op::step) score_step(s, kernel, p);
  if (c.op == Op::merge) score_merge(s, kernel, p);
  return s;
}

}  // namespace attest
