#include "properties/state.h"

#include <cmath>
#include <limits>

namespace attest {
namespace {

// States are held in the accumulator format only: fp32 or fp64.
double read(const attn_tensor& t, std::int64_t index) {
  return t.dtype == ATTN_FP64 ? static_cast<const double*>(t.data)[index]
                              : static_cast<double>(static_cast<const float*>(t.data)[index]);
}

std::vector<double> read_all(const attn_tensor& t) {
  std::vector<double> out;
  if (!t.data) return out;
  const std::int64_t columns = t.rank == 2 ? t.shape[1] : 1;
  out.reserve(t.shape[0] * columns);
  for (std::int64_t r = 0; r < t.shape[0]; ++r)
    for (std::int64_t c = 0; c < columns; ++c)
      out.push_back(read(t, r * t.stride[0] + (t.rank == 2 ? c * t.stride[1] : 0)));
  return out;
}

void judge_one(Tally& tally, double got, double bound, bool ill_conditioned, const std::string& tensor, std::int64_t r,
               std::int64_t e, const std::function<TruthElement(Tier)>& truth) {
  ElementBound b;
  b.deterministic = bound;
  b.ill_conditioned = ill_conditioned;
  TruthElement t;
  Judgement j;
  for (Tier tier : {Tier::double_double, Tier::exact128, Tier::exact256, Tier::exact512}) {
    t = truth(tier);
    j = judge(t, b, got);
    const bool settled = t.kind != TruthKind::finite || !std::isfinite(bound) ||
                         (j.verdict != Verdict::undecided && t.radius <= bound * 0x1p-10);
    // Exact results (a maximum; the state of one side) have a bound of 0: there is nothing to separate.
    if (settled || (bound == 0 && t.radius == 0)) break;
  }
  tally.add(j, got, truth_value(t), bound, [&] { return place(tensor, r, e); });
}

}  // namespace

StateValues read_state(const attn_state& s) {
  StateValues out;
  out.rows = s.m.shape[0];
  out.m = read_all(s.m);
  out.l = read_all(s.l);
  out.acc = read_all(s.acc);
  out.d_v = s.acc.data ? s.acc.shape[1] : 0;
  return out;
}

StateValues output_state(const Problem& problem) { return read_state(problem.abi().out); }

StepInputs::StepInputs(const Problem& problem) {
  const Shape& s = problem.source().shape;
  rows = s.tq;
  keys = s.tk;
  initial = read_state(problem.abi().a);
  d_v = initial.d_v;
  const auto sc = problem.input("scores");
  scores.assign(sc.begin(), sc.end());
  if (d_v > 0) {
    const auto values = problem.input("v");
    v.assign(values.begin(), values.end());
  }
}

StepRow StepInputs::row(std::int64_t r, std::int64_t begin, std::int64_t end) const {
  StepRow out;
  out.m = initial.m[r];
  out.l = initial.l[r];
  if (d_v > 0) out.acc.assign(initial.acc_row(r), initial.acc_row(r) + d_v);
  for (std::int64_t j = begin; j < end; ++j) {
    out.scores.push_back(scores[r * keys + j]);
    if (d_v > 0) out.v.push_back(v.data() + j * d_v);
  }
  return out;
}

MergeRow merge_row(StateKind kind, std::initializer_list<const StateValues*> parts, std::int64_t r) {
  MergeRow row;
  row.kind = kind;
  for (const StateValues* p : parts) {
    row.d_v = p->d_v;
    row.m.push_back(p->m[r]);
    if (!p->l.empty()) row.l.push_back(p->l[r]);
    if (!p->acc.empty()) row.acc.push_back(p->acc_row(r));
  }
  return row;
}

MergeSide merge_side(StateKind kind, const StateValues& s, std::int64_t r, StateBound error) {
  MergeSide side{kind, s.m[r], s.l.empty() ? 0 : s.l[r], {}, std::move(error)};
  if (!s.acc.empty()) side.acc = {s.acc_row(r), static_cast<std::size_t>(s.d_v)};
  return side;
}

StateBound exact_state(std::int64_t d_v) {
  StateBound b;
  b.acc.assign(d_v, 0.0);
  return b;
}

void judge_state(Tally& tally, const StateValues& got, std::int64_t r, const StateBound& bound,
                 const std::function<StateTruth(Tier)>& truth) {
  // A row's truth at a tier serves all of its elements.
  StateTruth cache[5];
  bool have[5] = {};
  const auto at = [&](Tier tier) -> const StateTruth& {
    const int n = static_cast<int>(tier);
    if (!have[n]) cache[n] = truth(tier);
    have[n] = true;
    return cache[n];
  };
  judge_one(tally, got.m[r], bound.m, bound.ill_conditioned, "m", r, -1, [&](Tier t) { return at(t).m; });
  if (!got.l.empty())
    judge_one(tally, got.l[r], bound.l, bound.ill_conditioned, "l", r, -1, [&](Tier t) { return at(t).l; });
  for (std::int64_t e = 0; e < got.d_v; ++e)
    judge_one(tally, got.acc_row(r)[e], bound.acc[e], bound.ill_conditioned, "acc", r, e,
              [&](Tier t) { return at(t).acc[e]; });
}

double truth_value(const TruthElement& t) {
  switch (t.kind) {
    case TruthKind::finite:
      return t.hi + t.lo;
    case TruthKind::zero:
      return 0;
    case TruthKind::neg_inf:
      return -std::numeric_limits<double>::infinity();
    case TruthKind::pos_inf:
      return std::numeric_limits<double>::infinity();
    case TruthKind::nan:
      return std::numeric_limits<double>::quiet_NaN();
  }
  return 0;
}

void set_literal(Case& c, const std::string& tensor, std::vector<double> values) {
  c.values.tensors[tensor] = TensorValues{std::move(values), ""};
}

}  // namespace attest
