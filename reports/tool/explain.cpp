// What a kernel wrote, element by element: truth, radius and tier, bound, verdict.
#include <algorithm>
#include <cmath>
#include <functional>

#include "properties/evaluate.h"
#include "properties/state.h"
#include "reports/tool/check.h"

namespace attest {
namespace {

constexpr std::string_view tier_names[] = {"fp64", "double-double", "exact 128 bits", "exact 256 bits",
                                           "exact 512 bits"};

// The laws' own rule (properties/evaluate.h), one element at a time and with the deciding tier kept: up the tiers until
// the radius is below 2^-10 of the bound. Where the bound admits anything, no tier decides: until the truth itself is
// known to three digits, for whoever reads it.
bool settled(const TruthElement& truth, double bound, const Judgement& judgement) {
  if (truth.kind != TruthKind::finite) return true;
  if (!std::isfinite(bound)) return truth.radius <= std::abs(truth.hi) * 0x1p-10;
  return judgement.verdict != Verdict::undecided && truth.radius <= bound * 0x1p-10;
}

ElementReport report(std::string where, const std::function<TruthElement(Tier)>& truth, Tier from,
                     const ElementBound& bound, double got, DType format) {
  ElementReport r;
  r.where = std::move(where);
  r.bound = bound;
  r.got = got;
  r.format = format;
  for (int t = static_cast<int>(from); t <= static_cast<int>(Tier::exact512); ++t) {
    r.truth = truth(static_cast<Tier>(t));
    r.tier = tier_names[t];
    r.judgement = judge(r.truth, bound, got);
    if (settled(r.truth, bound.deterministic, r.judgement)) break;
  }
  return r;
}

std::vector<ElementReport> explain_forward(const Kernel& kernel, const Problem& p, const LawContext& context) {
  const attn_contract& contract = kernel.abi->contract;
  std::vector<ElementReport> out;
  const auto o = p.output("o");
  const auto lse = p.has_output("lse") ? p.output("lse") : std::vector<double>{};
  for (const RowIndex& at : judged_rows(p, context)) {
    const Evaluated row = evaluate_row(kernel, p, at);
    for (std::int64_t e = lse.empty() ? 0 : -1; e < row.row.d_v; ++e) {
      const ElementBound& bound = e < 0 ? row.bound.lse : row.bound.o[static_cast<std::size_t>(e)];
      const auto truth = [&](Tier tier) {
        if (tier == row.truth.tier) return e < 0 ? row.truth.lse : row.truth.o[static_cast<std::size_t>(e)];
        const TruthElement t = element_truth(row.row, row.stats, e, tier);
        return e < 0 ? stated_lse(contract, t, row.row.size() == 0) : t;
      };
      const double got =
          e < 0 ? lse[static_cast<std::size_t>(lse_index(p, at))] : o[static_cast<std::size_t>(o_index(p, at, e))];
      out.push_back(
          report(place(at, e), truth, row.truth.tier, bound, got, e < 0 ? p.formats().accumulator : p.out_dtype()));
    }
  }
  return out;
}

void explain_state(std::vector<ElementReport>& out, const StateValues& got, std::int64_t r, const StateBound& bound,
                   const std::function<StateTruth(Tier)>& truth, DType format) {
  const auto add = [&](const std::string& tensor, std::int64_t e, double b, double value,
                       const std::function<TruthElement(const StateTruth&)>& part) {
    ElementBound element;
    element.deterministic = element.before_rounding = b;
    element.ill_conditioned = bound.ill_conditioned;
    out.push_back(report(
        place(tensor, r, e), [&](Tier t) { return part(truth(t)); }, Tier::fp64, element, value, format));
  };
  const auto row = static_cast<std::size_t>(r);
  add("m", -1, bound.m, got.m[row], [](const StateTruth& t) { return t.m; });
  if (!got.l.empty()) add("l", -1, bound.l, got.l[row], [](const StateTruth& t) { return t.l; });
  for (std::int64_t e = 0; e < got.d_v; ++e)
    add("acc", e, bound.acc[static_cast<std::size_t>(e)], got.acc_row(r)[e],
        [e](const StateTruth& t) { return t.acc[static_cast<std::size_t>(e)]; });
}

std::vector<ElementReport> explain_step(const Kernel& kernel, const Problem& p) {
  std::vector<ElementReport> out;
  const StepInputs in(p);
  const StateValues got = output_state(p);
  for (std::int64_t r = 0; r < in.rows; ++r) {
    const StepRow row = in.row(r, 0, in.keys);
    StepBound bound(kernel.abi->contract, row.m, row.l, row.acc);
    bound.fold(row.scores, row.v);
    explain_state(
        out, got, r, bound.state(), [&](Tier t) { return step_truth(row, t); }, p.formats().accumulator);
  }
  return out;
}

std::vector<ElementReport> explain_merge(const Kernel& kernel, const Problem& p) {
  std::vector<ElementReport> out;
  const StateKind kind = p.source().state;
  const StateValues a = read_state(p.abi().a), b = read_state(p.abi().b), got = output_state(p);
  for (std::int64_t r = 0; r < a.rows; ++r) {
    const MergeRow row = merge_row(kind, {&a, &b}, r);
    const StateBound exact = exact_state(a.d_v);
    const StateBound bound =
        merge_bound(kernel.abi->contract, merge_side(kind, a, r, exact), merge_side(kind, b, r, exact));
    explain_state(
        out, got, r, bound, [&](Tier t) { return merge_truth(row, t); }, p.formats().accumulator);
  }
  return out;
}

// A step and a merge call their rows tq.
std::int64_t rows_of(const Case& c) {
  const Shape& s = c.shape;
  return c.op == Op::forward ? s.batch * s.q_heads * s.tq : s.tq;
}

}  // namespace

CaseReport explain_case(const Case& c, const Kernel& kernel, const LawContext& context) {
  CaseReport out;
  Problem p(c, formats_for(kernel));
  out.status = execute(kernel, p);
  if (out.status.status != Outcome::pass) return out;
  out.elements = c.op == Op::forward ? explain_forward(kernel, p, context)
                 : c.op == Op::step  ? explain_step(kernel, p)
                                     : explain_merge(kernel, p);
  out.rows = rows_of(c);
  out.rows_judged = c.op == Op::forward ? static_cast<std::int64_t>(judged_rows(p, context).size()) : out.rows;
  out.inputs_rounded = !c.expected.tensors.empty() && !inputs_are_exact(p);
  // Failures first, then by how much of the bound was used; a NaN ratio counts as the worst there is.
  const auto weight = [](const ElementReport& e) {
    return std::isnan(e.judgement.ratio) ? INFINITY : e.judgement.ratio;
  };
  std::stable_sort(out.elements.begin(), out.elements.end(), [&](const ElementReport& x, const ElementReport& y) {
    const bool fx = x.judgement.verdict == Verdict::fail, fy = y.judgement.verdict == Verdict::fail;
    return fx != fy ? fx : weight(x) > weight(y);
  });
  return out;
}

}  // namespace attest
