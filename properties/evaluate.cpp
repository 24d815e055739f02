#include "properties/evaluate.h"

#include <cmath>
#include <limits>

#include "oracle/recipe.h"
namespace attest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLog2eHi = 0x1.71547652b82fep+0, kLog2eLo = 0x1.777d0ffda0d24p-56;

// (hi + lo) * log2(e) in double-double; the error of the product is below 2^-98 of it.
TruthElement to_base_2(TruthElement t) {
  if (t.kind != TruthKind::finite) return t;
  const double p = t.hi * kLog2eHi;
  const double e = std::fma(t.hi, kLog2eHi, -p) + (t.hi * kLog2eLo + t.lo * kLog2eHi);
  const double hi = p + e;
  t.lo = e - (hi - p);
  t.hi = hi;
  t.radius = t.radius * (kLog2eHi * (1 + 0x1p-50)) + std::abs(hi) * 0x1p-98;
  return t;
}

bool escalates(const TruthElement& t, const ElementBound& b, const Judgement& j) {
  if (t.kind != TruthKind::finite || !std::isfinite(b.deterministic)) return false;
  return j.verdict == Verdict::undecided || !(t.radius <= b.deterministic * 0x1p-10);
}

}  // namespace

bool reached_by_head(const Kernel& kernel, const Problem& p, const RowIndex& at) {
  if (kernel.abi->contract.isolates_nonfinite != ATTN_ISOLATES_HEAD) return false;
  const Shape& s = p.source().shape;
  const std::int64_t kv = at.head / (s.q_heads / s.kv_heads);
  const auto k = p.input("k"), v = p.input("v");
  for (std::int64_t j = 0; j < s.tk; ++j) {
    if (!p.key_seen(at.batch, kv, j) || p.visible(at.batch, at.head, at.i, j)) continue;
    const std::int64_t row = (at.batch * s.kv_heads + kv) * s.tk + j;
    for (std::int64_t c = 0; c < s.d_qk; ++c)
      if (!std::isfinite(k[row * s.d_qk + c])) return true;
    for (std::int64_t c = 0; c < s.d_v; ++c)
      if (!std::isfinite(v[row * s.d_v + c])) return true;
  }
  return false;
}

TruthElement stated_lse(const attn_contract& contract, TruthElement natural, bool empty_row) {
  if (empty_row) {
    natural.kind = contract.empty_lse == ATTN_EMPTY_LSE_POS_INF ? TruthKind::pos_inf : TruthKind::neg_inf;
    return natural;
  }
  return contract.lse_base == ATTN_LSE_BASE_2 ? to_base_2(natural) : natural;
}

Evaluated evaluate_row(const Kernel& kernel, const Problem& problem, const RowIndex& at, bool expected) {
  const attn_contract& contract = kernel.abi->contract;
  Evaluated out;
  out.row = make_row(problem, at.batch, at.head, at.i);
  out.stats = row_stats(out.row);
  // An fp64 kernel's bound is a few units of 2^-53: the double tier would escalate every time.
  const Tier tier = contract.acc_dtype == ATTN_FP64 ? Tier::double_double : Tier::fp64;
  out.truth = row_truth(out.row, out.stats, tier);
  const KeyPlan plan = key_plan(contract, out.row.tk, problem.abi().tiling);
  out.bound = forward_bound(contract, plan, out.row, out.stats, problem.out_dtype(), expected);
  out.truth.lse = stated_lse(contract, out.truth.lse, out.row.size() == 0);
  if (contract.lse_base == ATTN_LSE_BASE_2) {
    // Bounds are derived for natural logarithms (oracle/bound.h); they scale along.
    ElementBound& b = out.bound.lse;
    for (double* part : {&b.deterministic, &b.before_rounding, &b.spread, &b.drift}) *part *= kLog2eHi * (1 + 0x1p-50);
  }
  out.anything = reached_by_head(kernel, problem, at);
  if (out.anything) {
    for (ElementBound& b : out.bound.o) b.deterministic = kInfinity;
    out.bound.lse.deterministic = kInfinity;
  }
  return out;
}

Judgement judge_element(const attn_contract& contract, const Evaluated& row, std::int64_t e, double got,
                        TruthElement* truth) {
  TruthElement t = e < 0 ? row.truth.lse : row.truth.o[e];
  const ElementBound& b = e < 0 ? row.bound.lse : row.bound.o[e];
  Judgement j = judge(t, b, got);
  for (Tier tier : {Tier::double_double, Tier::exact128, Tier::exact256, Tier::exact512}) {
    if (!escalates(t, b, j)) break;
    if (tier <= row.truth.tier) continue;
    t = element_truth(row.row, row.stats, e, tier);
    if (e < 0) t = stated_lse(contract, t, row.row.size() == 0);
    j = judge(t, b, got);
  }
  if (truth) *truth = t;
  return j;
}

void Tally::count(const Judgement& j) {
  ++result_.elements;
  if (j.verdict == Verdict::vacuous) ++result_.vacuous_elements;
  if (j.verdict == Verdict::undecided) ++result_.undecided_elements;
  if (std::isfinite(j.ratio) && j.ratio > result_.worst_ratio) result_.worst_ratio = j.ratio;
  verdict_ = worst(verdict_, j.verdict);
}

void Tally::fail(std::string where, std::string message, double got, double want) {
  verdict_ = Verdict::fail;
  ++result_.elements;
  if (failures_++ == 0)
    result_.finding = Finding{std::move(where), got, want, std::abs(got - want), 0, std::move(message)};
}

void Tally::note(Verdict v, std::string reason) {
  ++result_.elements;
  verdict_ = worst(verdict_, v);
  if (v == Verdict::vacuous) {
    ++result_.vacuous_elements;
    vacuous_ = std::move(reason);
  } else if (v == Verdict::undecided) {
    ++result_.undecided_elements;
    undecided_ = std::move(reason);
  }
}

void Tally::absorb(const CheckResult& part) {
  result_.elements += part.elements;
  result_.vacuous_elements += part.vacuous_elements;
  result_.undecided_elements += part.undecided_elements;
  if (part.worst_ratio > result_.worst_ratio) result_.worst_ratio = part.worst_ratio;
  if (part.worst_o > result_.worst_o) result_.worst_o = part.worst_o;
  if (part.outcome == Outcome::fail) {
    if (failures_++ == 0) {
      result_.finding = part.finding;
      if (result_.finding.message.empty() && result_.finding.where.empty()) result_.finding.message = part.reason;
    }
    verdict_ = Verdict::fail;
  } else if (part.outcome == Outcome::undecided) {
    verdict_ = worst(verdict_, Verdict::undecided);
    undecided_ = part.reason;
  } else if (part.outcome == Outcome::vacuous && part.elements > 0) {
    // A part without elements says nothing and takes nothing away.
    verdict_ = worst(verdict_, Verdict::vacuous);
    vacuous_ = part.reason;
  }
}

CheckResult Tally::finish(std::string nothing) const {
  CheckResult r = result_;
  r.outcome = outcome_of(verdict_);
  if (r.outcome == Outcome::pass && r.elements == 0) {
    r.outcome = Outcome::vacuous;
    r.reason = std::move(nothing);
  } else if (r.outcome == Outcome::vacuous) {
    r.reason =
        vacuous_.empty() ? "the Contract admits anything at some elements (ill-conditioned or overflow)" : vacuous_;
  } else if (r.outcome == Outcome::undecided) {
    r.reason = undecided_.empty() ? "the oracle could not separate error and bound at 512 bits" : undecided_;
  } else if (r.outcome == Outcome::fail) {
    r.reason = r.finding.message;
  }
  return r;
}

std::string place(const RowIndex& at, std::int64_t e) {
  std::string s = (e < 0 ? "lse[b=" : "o[b=") + std::to_string(at.batch) + ",h=" + std::to_string(at.head) +
                  ",i=" + std::to_string(at.i);
  if (e >= 0) s += ",e=" + std::to_string(e);
  return s + "]";
}

std::string place(const std::string& tensor, std::int64_t row, std::int64_t e) {
  return tensor + "[r=" + std::to_string(row) + (e >= 0 ? ",e=" + std::to_string(e) : "") + "]";
}

std::int64_t lse_index(const Problem& p, const RowIndex& at) {
  const Shape& s = p.source().shape;
  return (at.batch * s.q_heads + at.head) * s.tq + at.i;
}

std::int64_t o_index(const Problem& p, const RowIndex& at, std::int64_t e) {
  return lse_index(p, at) * p.source().shape.d_v + e;
}

CheckResult stopped(const Execution& execution) {
  CheckResult r;
  r.outcome = execution.status;
  r.reason = execution.reason;
  if (execution.status == Outcome::fail) r.finding.message = execution.reason;
  return r;
}

bool inputs_are_exact(const Problem& problem) {
  for (const auto& [tensor, values] : make_values(problem.source())) {
    const auto stored = problem.input(tensor);
    for (std::size_t n = 0; n < values.size() && n < stored.size(); ++n)
      if (values[n] != stored[n] && !(std::isnan(values[n]) && std::isnan(stored[n]))) return false;
  }
  return true;
}

}  // namespace attest
